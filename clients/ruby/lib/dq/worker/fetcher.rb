# frozen_string_literal: true

module DQ
  class Worker
    # The thread that pops: never more messages than there are free places, and with the acks of those that have ended.
    #
    # While it waits in a pop that blocks, acks go through the reporter. Otherwise they go with the next pop
    # (DQ.ACKPOP).
    class Fetcher
      # How much longer than it waits the reply to a pop may take before the connection counts as dead, in seconds.
      MARGIN_SECONDS = 5.0
      # How often the settings of a queue are read again.
      LEARN_SECONDS = 5.0
      # How long the server may take to end a wait, and the reply of that to arrive.
      END_SECONDS = 0.5
      # After a pop whose reply was lost, how long it takes until twice as many messages are asked for again. The reply
      # may have been larger than the server lets pass, and what is lost with it waits for the end of its lease.
      CAREFUL_SECONDS = 60.0
      # How often it is reported that a queue cannot be popped.
      REPORT_SECONDS = 60.0

      # @return [Boolean] whether it has popped
      attr_reader :consuming

      def initialize(worker, lane)
        @worker = worker
        @lane = lane
        @backoff = Backoff.new
        @link = @connection_id = nil
        @interrupted = @consuming = false
        @reported = @learned = -Float::INFINITY
        @most = lane.concurrency # How many messages a pop asks for at most.
        @asked = 0 # How many the pop asks for whose reply has not come.
        @careful_until = 0.0
      end

      # Pops until the worker stops.
      def run
        until @worker.stopping?
          begin
            step(@link || connect)
            sound
          rescue ConnectionLost, Refused => error
            failed(error)
          end
        end
        @lane.flush_acks
        disconnect
      end

      # Has the thread end, which may wait in a pop. A message that is delivered to it meanwhile is given back.
      #
      # If the server does not answer or refuses that, the connection is closed: a message that is on its way then is
      # delivered again when its lease is over. A pop that still waited later would be delivered what is given back.
      def end_pop(thread)
        last = DQ.now + MARGIN_SECONDS
        asked = nil
        answers = true
        until thread.join(0.02) || DQ.now > last
          asked ||= DQ.now
          # A connection on which nothing arrives may be dead, although another one is served.
          answers &&= unblock && DQ.now - asked < END_SECONDS
          @link&.close unless answers
        end
      end

      private

      def connect
        @link = @worker.settings.link(@lane.name)
        @learned = -Float::INFINITY
        @connection_id = read_id(@link)
        @link
      end

      # HELLO needs no right, but some servers and proxies lack it.
      def read_id(link)
        Integer(Replies.map(link.call("HELLO"))["id"])
      rescue Refused => error
        raise if error.later?

        begin
          link.call("CLIENT", "ID")
        rescue Refused
          nil
        end
      end

      def disconnect
        @connection_id = nil
        @link&.close
        @link = nil
      end

      # Some servers crash if CLIENT UNBLOCK meets a client whose command is put off, since writes are paused. Then this
      # transaction is put off itself: its first command is a write, although it acknowledges nothing.
      # @return [Boolean] whether the server has answered in time
      def unblock
        id = @connection_id or return false
        link = @worker.settings.link(@lane.name, read_timeout: END_SECONDS, connect_timeout: END_SECONDS)
        begin
          commands = [["MULTI"], ["DQ.ACK", @lane.name, "#"], ["CLIENT", "UNBLOCK", id], ["EXEC"]]
          link.call_all(commands).last.is_a?(Array)
        ensure
          link.close
        end
      rescue Error
        false
      end

      # Acks what has ended and pops what there is room for.
      def step(link)
        learn(link) if DQ.now - @learned > LEARN_SECONDS
        acks, room = wait_for_work
        if @worker.stopping?
          put_back(acks)
        elsif acks.empty?
          announce
          messages = pop(link, ["DQ.POP", @lane.name], room, @lane.leases.block_ms)
          received(messages)
        else
          ack_and_pop(link, acks, room)
        end
      end

      # @return [Array(Array<Delivery>, Integer)] what is to be acked, and how many messages there is room for then
      def wait_for_work
        @lane.lock.synchronize do
          @lane.collecting = true
          full = -> { @lane.acks.empty? && @lane.working >= @lane.concurrency && !@worker.stopping? }
          @lane.fetch.wait(@lane.lock) while full.call
          acks = @lane.acks
          @lane.acks = []
          @lane.collecting = false if acks.empty?
          [acks, @lane.concurrency - @lane.working + acks.size]
        end
      end

      def put_back(acks) = @lane.lock.synchronize { @lane.acks = acks + @lane.acks }

      # Does not block, so that acks that were not answered are repeated soon.
      def ack_and_pop(link, acks, room)
        begin
          _, messages = pop(link, ["DQ.ACKPOP", @lane.name, acks.size, *acks.map(&:receipt)], room)
        rescue Error
          put_back(acks)
          raise
        end
        acks.each { |delivery| @lane.answered(delivery) }
        received(messages)
      end

      def pop(link, words, room, block_ms = nil)
        grow
        @asked = [room, @most].min
        words += ["COUNT", @asked, *@lane.leases.words, "META", "AS", @worker.consumer]
        words += ["BLOCK", block_ms] if block_ms
        @begun = @lane.leases.server_time.known? ? nil : DQ.now
        link.call(*words, seconds: block_ms && (block_ms / 1000.0)).tap { @asked = 0 }
      end

      def grow
        return unless @most < @lane.concurrency && DQ.now > @careful_until

        @most = [@most * 2, @lane.concurrency].min
        @careful_until = DQ.now + CAREFUL_SECONDS
      end

      def received(messages)
        return if messages.nil? || messages.empty?

        @worker.start_handlers(@lane, @lane.received(messages, @begun))
      end

      def announce
        return if @consuming

        @consuming = true
        @worker.consuming
      end

      def learn(link)
        @lane.leases.server_time.read(link)
        begin
          @lane.leases.learn(link.call("DQ.INFO", @lane.name))
        rescue Refused => error
          raise unless error.message.start_with?("NOPERM")
        end
        @learned = DQ.now
      end

      def sound
        @backoff.reset
        @lane.last_answer = DQ.now
        @lane.refused_since = nil
        return unless @interrupted

        @interrupted = false
        @worker.emit_of_queue(:resumed, @lane.name)
      end

      def failed(error)
        is_elsewhere = @worker.settings.learn(@lane.name, error, @link&.config)
        disconnect
        @lane.flush_acks
        if @asked > 1 && error.is_a?(ConnectionLost)
          @most = @asked / 2
          @careful_until = DQ.now + CAREFUL_SECONDS
        end
        @asked = 0
        return if @worker.stopping?

        report(error) unless is_elsewhere
        @lane.lock.synchronize { @lane.fetch.wait(@lane.lock, @backoff.next) unless @worker.stopping? }
      end

      def report(error)
        @lane.refused_since ||= DQ.now
        return if @interrupted && DQ.now - @reported <= REPORT_SECONDS

        @interrupted = true
        @reported = DQ.now
        @worker.emit_of_queue(:interrupted, @lane.name, "#{error.class}: #{error.message}")
      end
    end
  end
end
