# frozen_string_literal: true

require "json"

module DQ
  module ActiveJob
    # Runs the job of a message. +dq-work+ uses it for each queue; so can a program of your own:
    #
    #   worker.consume("default", concurrency: 5) { |message| DQ::ActiveJob::Runner.perform(message) }
    module Runner
      # Under which name a thread keeps the id of the job that it runs.
      JOB_ID = :dq_active_job_id
      private_constant :JOB_ID

      class << self
        # @param message [DQ::Message]
        # @return [Object, nil] what +perform+ returned, if the class of the job retains results
        # @raise [BadPayload] if the payload is no job; the message then waits for the backoff of its queue, as that of
        #   any other job that raises
        def perform(message)
          data = job_of(message.payload)
          raise BadPayload, "the payload is no job of Active Job" unless data

          outer = job_id
          Thread.current.thread_variable_set(JOB_ID, data["job_id"])
          result = ::ActiveJob::Base.execute(data.merge("provider_job_id" => message.id))
          result if retains?(data["job_class"]) && !result.is_a?(Exception) # An error that +retry_on+ has handled.
        ensure
          Thread.current.thread_variable_set(JOB_ID, outer)
        end

        # @return [String, nil] the class of the job of a message, for logs
        def kind(message)
          job_of(message.payload)&.fetch("job_class")
        end

        # @api private
        # @return [String, nil] the id of the job that this thread runs
        def job_id
          Thread.current.thread_variable_get(JOB_ID)
        end

        private

        # What a payload says about its job. The adapter of Sidekiq wraps that in a job of its own, which
        # +dqctl import sidekiq+ takes over as it is.
        def job_of(payload)
          data = JSON.parse(payload.dup.force_encoding(Encoding::UTF_8))
          data = data["args"]&.first if data.is_a?(Hash) && data.key?("wrapped")
          data if data.is_a?(Hash) && data["job_class"].is_a?(String)
        rescue JSON::ParserError, EncodingError
          nil
        end

        def retains?(name)
          name.constantize._dq_options.key?(:retain)
        end
      end
    end
  end
end
