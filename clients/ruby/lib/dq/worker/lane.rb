# frozen_string_literal: true

module DQ
  class Worker
    # The state of one queue of a worker: the messages that it holds, and the outcomes that are not answered yet.
    #
    # The threads of a lane meet here. The fetcher brings messages, handlers end, the clock, the listener and the
    # reporter find out that a message is lost. For each delivery exactly one of them decides the outcome. A message
    # occupies its place in the worker until its handler has ended and its outcome has been answered.
    #
    # An outcome is reported until the server has answered it. If the lease ends before, another worker may do the work
    # again, which is reported as a loss; an ack still counts if no other worker has taken the message.
    class Lane
      # A notice may come before the reply of the pop that it concerns. So many are remembered.
      EARLY_NOTICES = 1000

      attr_reader :worker, :name, :concurrency, :handler, :leases, :lock, :fetch, :report
      # @return [String] the name for people and logs
      attr_reader :title
      # @return [Integer] how many places are occupied
      attr_reader :working
      # @return [Array<Delivery>] acks that go with the next pop
      attr_accessor :acks
      # @return [Array<Array(Delivery, Outcome)>] what the reporter has to send
      attr_accessor :reports
      # @return [Hash{String => String}] checkpoints to be stored, by receipt
      attr_accessor :saves
      # @return [Boolean] whether the fetcher takes acks, to send them with its next pop
      attr_accessor :collecting
      # @return [Boolean] whether all leases are to be extended now
      attr_accessor :extend_now
      # @return [Float] when the reporter wakes by itself
      attr_accessor :look_at
      # @return [Float] when the server answered last
      attr_accessor :last_answer
      # @return [Float, nil] since when pops have failed
      attr_accessor :refused_since

      def initialize(worker, name, concurrency, lease_ms, handler, kind)
        @worker = worker
        @name = name
        @title = Texts.utf8(name)
        @concurrency = concurrency
        @handler = handler
        @kind = kind
        @leases = Leases.new(worker, lease_ms)
        @lock = Mutex.new
        @fetch = ConditionVariable.new
        @report = ConditionVariable.new
        @working = 0
        @held = {}
        @acks = []
        @reports = []
        @saves = {}
        @unanswered = {}
        @told = {}
        @early = {}
        @collecting = @extend_now = false
        @look_at = Float::INFINITY
        @last_answer = DQ.now
      end

      # Takes messages in, whose leases began at a time or later; nil: the server's own time says when they end.
      # @return [Array<Delivery>] those whose handlers are to be called
      def received(messages, begun)
        now = DQ.now
        deliveries, over = messages.map { |fields| delivery(fields, begun, now) }.partition { |one| one.end > now }
        early = nil
        @lock.synchronize do
          @working += deliveries.size
          deliveries.each { |delivery| @held[delivery.receipt] = delivery }
          @report.signal if deliveries.any? { |delivery| delivery.due < @look_at }
          early = deliveries.to_h { |delivery| [delivery, @early.delete(delivery.receipt)] }.compact
        end
        over.each { |delivery| @worker.emit(:lost, delivery, "lease") } # Another worker may have the message.
        deliveries.each { |delivery| @worker.watch(delivery) }
        early.each { |delivery, reason| take(delivery, reason) }
        deliveries
      end

      # A handler has ended.
      # @return [Boolean] whether its outcome counts
      def ended(delivery, outcome)
        @lock.synchronize do
          counts = decide(delivery)
          @told.delete(delivery)
          delivery.parts -= 1
          counts ? report_outcome(delivery, outcome) : free_if_done(delivery)
          counts
        end
      end

      # Takes a message from its handler, with an outcome if the message is still ours.
      # @return [Boolean] whether the handler had it
      def take(delivery, reason, outcome = nil)
        @lock.synchronize do
          return false unless decide(delivery)

          @told[delivery] = DQ.now
          if outcome
            queue_report(delivery, outcome)
          else
            @saves.delete(delivery.receipt)
            delivery.parts -= 1
            free_if_done(delivery)
          end
        end
        delivery.message.lose(reason)
        @worker.emit(outcome ? outcome.kind : :lost, delivery, reason)
        true
      end

      # Gives a message back whose handler was not called.
      def give_back(delivery) = ended(delivery, Outcome::GIVEN_BACK)

      # The server has answered the outcome.
      def answered(delivery)
        @lock.synchronize do
          @unanswered.delete(delivery)
          delivery.parts -= 1
          free_if_done(delivery)
        end
      end

      # The lease has ended before the server has answered the outcome.
      def late(delivery)
        @lock.synchronize do
          return if delivery.late || !@unanswered.key?(delivery)

          delivery.late = true
        end
        @worker.emit(:lost, delivery, "lease")
      end

      # Stores a checkpoint soon.
      def save(receipt, checkpoint)
        @lock.synchronize do
          @saves[receipt] = checkpoint
          @report.signal
        end
      end

      # Passes the acks that wait for the fetcher to the reporter.
      def flush_acks
        @lock.synchronize do
          @collecting = false
          @reports.concat(@acks.map { |delivery| [delivery, Outcome::ACK] })
          @acks.clear
          @report.signal
        end
      end

      # A command has taken a message from this worker, or from another one.
      def noticed(reason, receipt)
        delivery = @lock.synchronize do
          @held.fetch(receipt) do
            @early[receipt] = reason
            @early.shift if @early.size > EARLY_NOTICES
            nil
          end
        end
        take(delivery, reason) if delivery
      end

      # Has all leases extended at once, which shows what is lost.
      def ask_for_losses
        @lock.synchronize do
          @extend_now = true
          @report.signal
        end
      end

      # @return [Delivery, nil] one whose outcome is open or not answered
      def delivery_of(receipt)
        @lock.synchronize { @held[receipt] || @unanswered.each_key.find { |delivery| delivery.receipt == receipt } }
      end

      # @return [Array<Delivery>] those whose outcome is open
      def running = @lock.synchronize { @held.values }

      # @return [Array<Delivery>] those whose outcome the server has not answered
      def reported = @lock.synchronize { @unanswered.keys }

      # @return [Array<Float>] since when handlers go on although their message was taken from them
      def hanging = @lock.synchronize { @told.values }

      # Only with the lock.
      attr_reader :held

      # Wakes the threads, so that they see that the worker stops.
      def wake
        @lock.synchronize do
          @fetch.broadcast
          @report.broadcast
        end
      end

      private

      def delivery(fields, begun, now)
        receipt = fields[3].b
        message = Message.new(@name, @worker.consumer, fields, @kind) { |checkpoint| save(receipt, checkpoint) }
        left, certain = @leases.left(message.meta["deadline"], begun, now)
        Delivery.new(message, now, left, @leases.seconds).tap do |delivery|
          delivery.due = now unless certain # It is extended at once, and then it is known how long that lasts.
        end
      end

      def decide(delivery)
        return false if delivery.decided

        @held.delete(delivery.receipt)
        @worker.guard&.drop(delivery.receipt)
        delivery.decided = true
      end

      def report_outcome(delivery, outcome)
        return queue_report(delivery, outcome) unless outcome.equal?(Outcome::ACK) && @collecting

        @unanswered[delivery] = true
        @acks << delivery
        @fetch.signal
      end

      def queue_report(delivery, outcome)
        @unanswered[delivery] = true
        @reports << [delivery, outcome]
        @report.signal
      end

      def free_if_done(delivery)
        return unless delivery.parts.zero?

        @working -= 1
        @fetch.signal
      end
    end
  end
end
