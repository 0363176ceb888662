# frozen_string_literal: true

require "active_job/enqueuing" # EnqueueError, from Rails 7.0 on

module DQ
  module ActiveJob
    # The queue has a job of the id, so no other one was enqueued: +perform_later+ returns false, and +enqueue_error+ of
    # the job is this error.
    class Duplicate < (defined?(::ActiveJob::EnqueueError) ? ::ActiveJob::EnqueueError : DQ::Error)
      def initialize(id)
        super("the queue has a job of the id #{id.inspect}")
      end
    end

    # Has Rails 6.1, whose +enqueue+ knows no such error, return false as later ones do.
    module Refusal
      def enqueue(options = {})
        super
      rescue Duplicate
        false
      end
    end
  end
end
