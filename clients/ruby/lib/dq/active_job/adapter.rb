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
      # @param job [ActiveJob::Base] becomes a message that is ready at once
      def enqueue(job)
        push(job)
      end

      # @param job [ActiveJob::Base] becomes a message that is due at a time
      # @param timestamp [Numeric] Unix time in seconds
      def enqueue_at(job, timestamp)
        push(job, at: timestamp.to_f)
      end

      # +perform_all_later+, of Rails 7.1 and newer. Neighbours that differ in nothing but their payloads are pushed by
      # one command, so jobs stay in their order.
      #
      # @return [Integer] how many jobs were enqueued
      def enqueue_all(jobs)
        jobs.chunk_while { |one, next_one| alike(one) == alike(next_one) }.each { |some| push_many(some) }
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

      # What all jobs have in common that one command pushes.
      def alike(job)
        [job.queue_name, job.scheduled_at&.to_f, DQ::ActiveJob::Options.of(job).except(:id)]
      end

      def push_many(jobs)
        queue, at, options = alike(jobs.first)
        options[:at] = at if at
        ids = jobs.map { |job| DQ::ActiveJob::Options.of(job)[:id] }
        replies = DQ.queue(queue).push_many(jobs.map { |job| JSON.generate(job.serialize) }, ids: ids, **options)
        jobs.zip(ids, replies) { |job, id, reply| note(job, id, reply) }
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
