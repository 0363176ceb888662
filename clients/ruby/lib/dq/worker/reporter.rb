# frozen_string_literal: true

module DQ
  class Worker
    # The thread that extends the leases of a queue at half time, and reports outcomes until they are answered.
    class Reporter
      # Errors that a worker expects to pass: a password may be about to change.
      PASSING = /\A(?:NOAUTH|WRONGPASS)\b/
      # The longest checkpoint that the server keeps. It refuses a nack with a longer one.
      CHECKPOINT_BYTES = 65_536

      # What is sent in one go.
      Batch = Struct.new(:reports, :saves, :kept) do
        def empty? = reports.empty? && saves.empty? && kept.empty?
      end

      def initialize(worker, lane)
        @worker = worker
        @lane = lane
        @link = nil
        @backoff = Backoff.new
      end

      # Works until the worker is closed and nothing is left to report.
      def run
        until (batch = next_batch).empty?
          begin
            again = send_batch(@link || connect, batch)
            again ? send_again(again) : sound
          rescue ConnectionLost, Refused => error
            @worker.settings.learn(@lane.name, error, @link&.config)
            send_again(batch)
          rescue StandardError # A fault of this program: the messages come back, and keep no places until then.
            batch.reports.each { |delivery, _| @lane.answered(delivery) }
            raise
          end
        end
        @link&.close
      end

      private

      def connect
        @link = @worker.settings.link(@lane.name)
        @lane.leases.server_time.read(@link)
        @link
      end

      def sound
        @backoff.reset
        @lane.last_answer = DQ.now
      end

      # Waits until there is something to send.
      # @return [Batch] an empty one once the worker is closed and everything is sent
      def next_batch
        @lane.lock.synchronize do
          loop do
            due = @lane.held.each_value.map(&:due).min
            batch = take_batch(due)
            return batch if !batch.empty? || @worker.closed?

            @lane.look_at = due || Float::INFINITY
            @lane.report.wait(@lane.lock, due&.finite? ? [due - DQ.now, 0.001].max : nil)
            @lane.look_at = -Float::INFINITY # It looks now.
          end
        end
      end

      def take_batch(due)
        kept = @lane.extend_now || (due && due <= DQ.now) ? @lane.held.values : []
        @lane.extend_now = false
        batch = Batch.new(@lane.reports, @lane.saves, kept)
        @lane.reports = []
        @lane.saves = {}
        batch
      end

      # @return [Batch, nil] what is to be sent again, if the server cannot do it now
      def send_batch(link, batch)
        @lane.leases.server_time.refresh(link) unless batch.kept.empty? && batch.saves.empty?
        groups = grouped(batch.reports)
        sent = DQ.now
        replies = link.call_all([*lease_commands(batch), *outcome_commands(groups, batch.saves)])
        is_extended = batch.kept.empty? || extended(batch.kept, replies.shift, sent)
        unsaved = saved(batch.saves, replies.shift(batch.saves.size), sent)
        unheard = groups.zip(replies).flat_map { |reports, reply| heard?(reports, reply) ? [] : reports }
        Batch.new(unheard, unsaved, []) unless is_extended && unsaved.empty? && unheard.empty?
      end

      # @return [Array<Array>] the reports of each command: all acks go with one
      def grouped(reports)
        acks, others = reports.partition { |_, outcome| outcome.equal?(Outcome::ACK) }
        [acks, *others.map { |report| [report] }].reject(&:empty?)
      end

      def lease_commands(batch)
        key = @lane.name
        lease = @lane.leases.words
        kept = batch.kept.map(&:receipt)
        saves = batch.saves.map { |receipt, value| ["DQ.EXTEND", key, receipt, *lease, "CHECKPOINT", value] }
        kept.empty? ? saves : [["DQ.MEXTEND", key, kept.size, *kept, *lease], *saves]
      end

      def outcome_commands(groups, saves) = groups.map { |reports| outcome_command(reports, saves) }

      # A nack takes the checkpoint along that is not stored yet: the server may refuse that and accept the nack.
      def outcome_command(reports, saves)
        delivery, outcome = reports.first
        words = [outcome.command, @lane.name, *reports.map { |reported, _| reported.receipt }, *outcome.words]
        checkpoint = saves[delivery.receipt]
        return words unless outcome.command == "DQ.NACK" && checkpoint && checkpoint.bytesize <= CHECKPOINT_BYTES

        [*words, "CHECKPOINT", checkpoint]
      end

      # Notes the new ends of leases, and what is lost.
      # @return [Boolean] false if it is to be tried again soon
      def extended(kept, reply, sent)
        if reply.is_a?(Refused)
          refused(reply.message) unless passes?(reply)
          return false
        end
        kept.zip(reply) { |delivery, deadline| @worker.extended(@lane, delivery, deadline, sent) }
        @worker.guard&.hold(@lane, kept.reject(&:decided))
        true
      end

      # To keep a checkpoint also extends the lease.
      # @return [Hash] the checkpoints that the server cannot keep now
      def saved(saves, replies, sent)
        saves.zip(replies).each_with_object({}) do |((receipt, value), reply), again|
          if reply.is_a?(Refused)
            passes?(reply) ? again[receipt] = value : refused("a checkpoint is not kept: #{reply.message}")
          else
            delivery = @lane.lock.synchronize { @lane.held[receipt] }
            @worker.extended(@lane, delivery, reply, sent) if delivery
          end
        end
      end

      # @return [Boolean] false if the outcomes are to be sent again
      def heard?(reports, reply)
        return false if reply.is_a?(Refused) && passes?(reply)

        reports.each { |delivery, _| @lane.answered(delivery) } # First: whatever follows, their places are free.
        refused(reply.message) if reply.is_a?(Refused)
        @worker.gave_back if reply.is_a?(String) && reports.first.last.equal?(Outcome::GIVEN_BACK)
        dead = reply == "dead"
        reports.each do |delivery, outcome|
          @worker.log_failure(delivery, outcome, dead) if dead || %i[failed rejected].include?(outcome.kind)
        end
        true
      end

      def refused(text) = @worker.emit_of_queue(:refused, @lane.name, text)

      def passes?(error)
        @worker.settings.learn(@lane.name, error, @link&.config)
        error.later? || error.is_a?(Moved) || error.message.match?(PASSING)
      end

      # Keeps what is to be sent again. What was sent on a connection that broke may be answered there no more.
      def send_again(batch)
        @link&.close
        @link = nil
        @lane.lock.synchronize do
          @lane.reports = batch.reports + @lane.reports
          mine = @lane.held.keys + @lane.reports.map { |delivery, _| delivery.receipt }
          @lane.saves = batch.saves.slice(*mine).merge(@lane.saves)
          if DQ.now > @worker.patience
            @lane.reports = []
            @lane.saves = {}
          else
            @lane.report.wait(@lane.lock, @backoff.next)
          end
        end
      end
    end
  end
end
