# frozen_string_literal: true

module DQ
  class Worker
    # Calls handlers, each in a thread of its own: what it sets there, such as a locale, is not seen by the next one.
    class Handlers
      # Ruby's threads take turns of 100 ms, halved by each step of a lower priority: busy handlers then let the threads
      # that keep leases run more often.
      PRIORITY = -2
      # How long no more messages are taken after the system has refused a thread.
      NO_THREAD_SECONDS = 1.0

      def initialize(worker, time_limit)
        @worker = worker
        @time_limit = time_limit
        @pid = Process.pid
      end

      # Calls the handlers of deliveries, or gives them back if the worker stops.
      def start(lane, deliveries)
        return deliveries.each { |delivery| lane.give_back(delivery) } if @worker.stopping?

        deliveries.each { |delivery| limit(delivery) } if @time_limit
        refused = nil
        @worker.guard&.hold(lane, deliveries) # From now on, a handler may let no other thread run.
        deliveries.each do |delivery|
          start_thread(lane, delivery)
        rescue ThreadError => error
          refused = error
          lane.give_back(delivery) # Its handler was not called.
        end
        no_thread(lane, refused) if refused
      end

      private

      def limit(delivery)
        delivery.limit = delivery.begun + @time_limit
        @worker.watch(delivery)
      end

      def start_thread(lane, delivery)
        Thread.new do
          Thread.current.name = "dq-handler"
          Thread.current.report_on_exception = false
          Thread.current.priority = PRIORITY
          # A time limit is raised only while the handler runs.
          Thread.handle_interrupt(TimeLimit => :never) { handle(lane, delivery) }
        rescue TimeLimit
          nil # It was raised when the handler had just ended.
        end
      end

      # What went back is delivered at once: a pause leaves it to other workers.
      def no_thread(lane, error)
        @worker.emit_of_queue(:refused, lane.name, "a handler cannot be called: #{error.message}")
        @worker.wait(NO_THREAD_SECONDS)
      end

      def handle(lane, delivery)
        return lane.give_back(delivery) if @worker.stopping? || delivery.decided # It was not begun, or is lost.

        outcome = Outcome.of_error(Error.new("the handler has ended its thread"))
        @worker.emit(:started, delivery)
        delivery.thread = Thread.current
        outcome = Outcome.of_result(call(lane, delivery.message))
      rescue Exception => error # rubocop:disable Lint/RescueException -- a handler may raise anything
        outcome = Outcome.of_error(error)
      ensure # Thread.exit and throw come here, too.
        delivery.thread = nil
        exit!(1) if Process.pid != @pid # The handler has forked, and the child has come back.
        @worker.emit(outcome.kind, delivery, outcome.text) if outcome && lane.ended(delivery, outcome)
      end

      def call(lane, message)
        Thread.current.thread_variable_set(:dq_message, message)
        Thread.handle_interrupt(TimeLimit => :immediate) do
          chain = @worker.middleware.reverse.inject(-> { lane.handler.call(message) }) do |inner, middleware|
            -> { middleware.handle(message, &inner) }
          end
          chain.call
        end
      end
    end
  end
end
