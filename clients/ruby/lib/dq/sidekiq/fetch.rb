# frozen_string_literal: true

module DQ
  module Sidekiq
    # Takes the place of Sidekiq::BasicFetch, by the setting that Sidekiq has for it.
    class Fetch
      # A wait of so many seconds is the longest time that an idle process takes to stop.
      BLOCK_SECONDS = 2

      # @param config [Sidekiq::Capsule, Hash] the capsule, or the options of Sidekiq 6
      def initialize(config)
        @config = config
        @leases = Leases.new
        @idle = Thread::Queue.new
      end

      # Waits for the next job. Called by each thread of Sidekiq.
      #
      # @return [Work, nil] nil if none came within two seconds
      def retrieve_work
        # Sidekiq raises Shutdown in threads that are late. In the middle of a reply that would lose a job.
        Thread.handle_interrupt(::Sidekiq::Shutdown => :never) do
          work = pop
          return work unless work && Thread.pending_interrupt?

          work.requeue
          nil
        end
      end

      # Gives back what threads have not done when the time to stop is over.
      #
      # @param works [Array<Work>]
      # @param _options [Hash] of Sidekiq 6
      def bulk_requeue(works, _options = nil)
        works.each(&:requeue)
        ::Sidekiq.logger.info("dq: gave #{works.size} jobs back") unless works.empty?
      end

      private

      def pop
        keys = queues.map { |name| PREFIX + name }
        lease = (DQ::Sidekiq.lease * 1000).ceil
        queue, messages = with_link(keys.first) do |link|
          link.call("DQ.MPOP", keys.size, *keys, "BLOCK", BLOCK_SECONDS * 1000, "LEASE", lease,
                    "AS", Texts.consumer("sidekiq"), seconds: BLOCK_SECONDS)
        end
        Work.new(@leases, queue, messages.first).tap { |work| @leases.hold(work) } if queue
      end

      # Lends a connection that no other thread uses. Sidekiq replaces a thread after each job that fails, so
      # connections do not belong to threads. One on which a reply may be outstanding is not lent again.
      def with_link(key)
        link = idle_link || DQ::Sidekiq.client.settings.link(key)
        link.check
        yield(link).tap { @idle << link }
      rescue DQ::Refused
        @idle << link
        raise
      end

      def idle_link
        @idle.pop(true)
      rescue ThreadError
        nil
      end

      # The queues in the order of this wait: as they were given, or drawn by their weights.
      def queues
        if @config.respond_to?(:mode)
          ordered(@config.queues, @config.mode == :strict)
        else
          ordered(@config[:queues], @config[:strict])
        end
      end

      def ordered(names, strict)
        (strict ? names : names.shuffle).map(&:to_s).uniq
      end
    end
  end
end
