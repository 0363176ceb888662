# frozen_string_literal: true

require "active_job"
require "dq"
require "dq/active_job/duplicate"
require "dq/active_job/options"
require "dq/active_job/adapter"
require "dq/active_job/runner"

module DQ # rubocop:disable Style/Documentation -- lib/dq.rb describes it
  # The adapter +:dq+ of Active Job. A job is one message of the queue of the same name, under the id of the job, and
  # that message is leased to a worker until the job has ended. Rails loads this file by itself; elsewhere
  # <tt>require "dq/active_job"</tt> does.
  module ActiveJob
  end

  class << self
    # Removes a job, in whatever state it is. What runs is not interrupted, but it is notified: +DQ.message.lost?+.
    #
    # @param job [ActiveJob::Base] what +perform_later+ returned, or a job with the same +job_id+ and +queue_name+
    # @return [String, nil] the state that it was in: "delayed", "ready", "inflight" or "dead"; nil if the queue does
    #   not have it
    def cancel(job)
      queue(job.queue_name).cancel(ActiveJob::Options.id(job))
    end

    # Moves a job that waits to another time.
    #
    # @param job [ActiveJob::Base] as for {cancel}
    # @param at [Time, #to_time, Numeric] the new time; a number is Unix time in seconds
    # @return [Boolean] whether the queue has the job, and nobody works on it
    def reschedule(job, at:)
      queue(job.queue_name).reschedule(ActiveJob::Options.id(job), at: at)
    end
  end
end

ActiveJob::Base.include(DQ::ActiveJob::Options)
