# frozen_string_literal: true

module DQ
  module Sidekiq
    # Keeps the leases of the jobs that a process has, from a thread of its own.
    class Leases
      # A lease is extended so often, so that one attempt may fail.
      TIMES_PER_LEASE = 3.0

      def initialize
        @held = {}
        @lock = Mutex.new
      end

      # @param work [Work] what to keep until it is released
      def hold(work)
        @lock.synchronize do
          @held[work.receipt] = work
          begin_in_this_process unless @process == Process.pid
        end
      end

      # @param work [Work] what has an outcome, or is lost
      # @return [Boolean] whether it was held
      def release(work)
        !@lock.synchronize { @held.delete(work.receipt) }.nil?
      end

      private

      # A process may fork before it fetches.
      def begin_in_this_process
        @process = Process.pid
        @thread = Thread.new { keep }
        at_exit { give_back if @process == Process.pid }
      end

      # Sidekiq ends threads by Thread#raise: between a wait and the job that came, or while an outcome is sent.
      def give_back
        @lock.synchronize { @held.values }.each(&:give_back)
      end

      def keep
        Thread.current.name = "dq leases"
        loop do
          sleep DQ::Sidekiq.lease / TIMES_PER_LEASE
          extend_all
        rescue StandardError => error
          ::Sidekiq.logger.error("dq: #{error.full_message(highlight: false)}")
        end
      end

      def extend_all
        running, ended = @lock.synchronize { @held.values }.partition { |work| work.thread.alive? }
        ended.each(&:abandon)
        running.group_by(&:queue).each { |queue, works| extend_leases(queue, works) }
      end

      def extend_leases(queue, works)
        sent = DQ.now
        milliseconds = (DQ::Sidekiq.lease * 1000).ceil
        receipts = works.map(&:receipt)
        deadlines = DQ::Sidekiq.client.call("DQ.MEXTEND", queue, works.size, *receipts, "LEASE", milliseconds)
        works.zip(deadlines) { |work, deadline| deadline ? work.extended(sent) : lose(work) }
      rescue DQ::Error => error
        ::Sidekiq.logger.warn("dq: the leases of #{works.size} jobs of #{queue} were not extended: #{error.message}")
      end

      def lose(work)
        work.lost if release(work) && !work.decided? # One whose ack has just arrived is gone as well.
      end
    end
  end
end
