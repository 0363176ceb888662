# frozen_string_literal: true

require "json"

module ActiveJob
  module QueueAdapters
    # Sends jobs to queues of dq:
    #
    #   config.active_job.queue_adapter = :dq
    #
    # It uses nothing of Active Job but what adapters are given.
    class DqAdapter < (const_defined?(:AbstractAdapter) ? AbstractAdapter : Object)
      # So many jobs are pushed by one command, which is one step of the server.
      MOST_JOBS = 1000

      # @param job [ActiveJob::Base] becomes a message that is ready at once
      def enqueue(job)
        push(job)
      end

      # @param job [ActiveJob::Base] becomes a message that is due at a time
      # @param timestamp [Numeric] Unix time in seconds
      def enqueue_at(job, timestamp)
        push(job, at: timestamp.to_f)
      end

      # +perform_all_later+, of Rails 7.1 and newer. Neighbours that differ in nothing but their ids and payloads are
      # pushed by one command, so jobs stay in their order.
      #
      # @return [Integer] how many jobs were enqueued
      def enqueue_all(jobs)
        pairs = jobs.map { |job| [job, options_with_time(job)] }
        pairs.chunk_while { |one, other| alike?(one, other) }.each do |some|
          some.each_slice(MOST_JOBS) { |few| push_many(few) }
        end
        jobs.count(&:successfully_enqueued?)
      end

      # A worker may have a job before the transaction of its producer is committed.
      def enqueue_after_transaction_commit?
        true
      end

      # Whether a job with steps (Rails 8.1) is to stop at the next one.
      def stopping?
        DQ.stopping? || DQ.message&.lost? || false
      end

      private

      def push(job, **time)
        options = DQ::ActiveJob::Options.of(job)
        options.merge!(retry_of(DQ.message)) if retries_itself?(job)
        id = DQ.queue(job.queue_name).push(JSON.generate(job.serialize), **options, **time)
        raise DQ::ActiveJob::Duplicate, options[:id] if id.nil?

        job.provider_job_id = id
      end

      # A retry takes the place of the message that is worked on when that ends, by an ack or because the process was
      # killed: there is one message of a job, and a unique job stays unique between its retries.
      def retry_of(message)
        raise DQ::Lost, "the message was taken from this worker: #{message.reason}" if message.lost?

        { id: message.id, replace: true, later: true }
      end

      def retries_itself?(job)
        DQ.message && DQ::ActiveJob::Runner.job_id == job.job_id
      end

      def options_with_time(job)
        options = DQ::ActiveJob::Options.of(job)
        options[:at] = job.scheduled_at.to_f if job.scheduled_at
        options
      end

      def alike?((one, options), (other, other_options))
        one.queue_name == other.queue_name && options.except(:id) == other_options.except(:id)
      end

      # @param pairs [Array<Array(ActiveJob::Base, Hash)>] jobs, and the options of their messages
      def push_many(pairs)
        queue = DQ.queue(pairs.first.first.queue_name)
        options = pairs.first.last.except(:id)
        ids = pairs.map { |_job, own| own[:id] }
        replies = queue.push_many(pairs.map { |job, _own| JSON.generate(job.serialize) }, ids: ids, **options)
        pairs.zip(replies) { |(job, own), reply| note(job, own[:id], reply) }
      end

      def note(job, id, reply)
        job.successfully_enqueued = reply.is_a?(String)
        case reply
        when String then job.provider_job_id = reply
        when nil then job.enqueue_error = DQ::ActiveJob::Duplicate.new(id)
        else job.enqueue_error = EnqueueError.new(reply.message)
        end
      end
    end
  end
end
