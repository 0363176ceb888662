# frozen_string_literal: true

module DQ
  module Sidekiq
    # What Sidekiq::Client does with jobs that went through its middleware. It replaces a private method, the only one.
    module Push
      private

      # @param payloads [Array<Hash>] jobs; "at" is the due time of those that are scheduled
      def raw_push(payloads)
        return super if defined?(::Sidekiq::Testing) && ::Sidekiq::Testing.enabled?

        groups = payloads.group_by { |job| job.values_at("queue", "at") }
        groups.each { |(queue, at), jobs| push_to_dq(queue, at, jobs) }
        true
      end

      # The message has the id of the job. A job whose retry is pushed before its delivery has ended, as one that is
      # interrupted between two iterations, takes the place of that delivery then. Nor does a repeated push make two.
      def push_to_dq(queue, at, jobs)
        options = { ids: jobs.map { |job| job["jid"] }, replace: true, later: true }
        options[:at] = at if at
        texts = jobs.map { |job| ::Sidekiq.dump_json(job.except("at").merge!("enqueued_at" => enqueued_at(job))) }
        DQ::Sidekiq.queue(queue).push_many(texts, **options)
      end

      # When the job is in its queue: now, or when it is due. Sidekiq counts in milliseconds since 8, before in seconds.
      def enqueued_at(job)
        seconds = job["at"] || Time.now.to_f
        job["created_at"].is_a?(Integer) ? (seconds * 1000).to_i : seconds
      end
    end
  end
end
