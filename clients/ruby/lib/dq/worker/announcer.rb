# frozen_string_literal: true

module DQ
  class Worker
    # The thread that calls what users hand in to watch a worker: its hook and its logger. These may raise, or block for
    # ever. Nothing that keeps a lease or reports an outcome waits for them.
    class Announcer
      # So many calls may wait. Those beyond are dropped: whoever blocks this thread for so long reads them no more.
      MOST_WAITING = 100_000

      # @param logger [Logger]
      def initialize(logger)
        @logger = logger
        @calls = Thread::Queue.new
      end

      # Starts the thread.
      def start
        @thread = Thread.new { call(@calls.pop) until @calls.closed? && @calls.empty? }
        @thread.name = "dq-announce"
        @thread.report_on_exception = false
      end

      # Has the thread make a call.
      def announce(&call)
        @calls << call if @calls.size < MOST_WAITING
      rescue ClosedQueueError
        nil
      end

      # Has the thread write to the log.
      # @param level [Integer] of Logger
      def log(level, text) = announce { @logger.add(level, text) }

      # Waits for so many seconds until what was handed in has been called.
      def close(seconds)
        @calls.close
        @thread&.join(seconds)
      end

      private

      def call(announced)
        announced&.call
      rescue Exception => error # rubocop:disable Lint/RescueException -- a hook may raise anything
        log_failure(error)
      end

      def log_failure(error)
        @logger.error("the hook or the logger failed: #{error.class}: #{error.message}")
      rescue Exception # rubocop:disable Lint/RescueException, Lint/SuppressedException -- it is the logger that fails
      end
    end
  end
end
