# frozen_string_literal: true

module DQ
  class Worker
    # The thread that watches the time: it stops handlers whose lease is over, or that have reached their time limit. It
    # does no input or output, so it is in time even if the server cannot be reached.
    class Clock
      def initialize(worker)
        @worker = worker
        @next = nil
        @lock = Mutex.new
        @changed = ConditionVariable.new
      end

      # Something ends at this time.
      def note(time)
        @lock.synchronize do
          next unless @next.nil? || time < @next

          @next = time
          @changed.signal
        end
      end

      # Watches until the worker is closed.
      def run
        until @worker.closed?
          wait
          @worker.lanes.each do |lane|
            now = DQ.now
            lane.running.each { |delivery| look_at(lane, delivery, now) }
            lane.reported.each { |delivery| look_at_outcome(lane, delivery, now) }
          end
        end
      end

      # Has the thread see that the worker is closed.
      def wake = note(DQ.now)

      private

      def wait
        @lock.synchronize do
          @changed.wait(@lock, @next && [@next - DQ.now, 0.001].max) while @next.nil? || @next > DQ.now
          @next = nil
        end
      end

      def look_at(lane, delivery, now)
        @worker.guard&.catch_up if delivery.end <= now # It may have been extended while no thread could run.
        if delivery.end <= now
          lane.take(delivery, "lease")
        elsif delivery.limit && delivery.limit <= now
          time_limit(lane, delivery)
        else
          note([delivery.end, delivery.limit].compact.min)
        end
      end

      def look_at_outcome(lane, delivery, now)
        return if delivery.late

        @worker.guard&.catch_up if delivery.end <= now
        delivery.end <= now ? lane.late(delivery) : note(delivery.end)
      end

      def time_limit(lane, delivery)
        seconds = (delivery.limit - delivery.begun).round(3)
        error = TimeLimit.new("the handler took longer than its time limit of #{seconds} s")
        return unless lane.take(delivery, "time limit", Outcome.of_error(error))

        delivery.thread&.raise(error)
      end
    end
  end
end
