# frozen_string_literal: true

module DQ
  module ActiveJob
    # What a class of jobs says about its messages:
    #
    #   class ReminderJob < ApplicationJob
    #     dq_options retries: 5, group: ->(job) { job.arguments.first.customer_id }
    #   end
    module Options
      KNOWN = %i[id group priority retries lease ttl retain replace].freeze
      PRIORITIES = -128..127

      class << self
        # @private
        def included(base)
          base.class_attribute :_dq_options, instance_accessor: false, instance_predicate: false, default: {}
          base.extend(ClassMethods)
          base.include(Refusal) unless defined?(::ActiveJob::EnqueueError)
        end

        # @private
        # @return [Hash] the options of the message of a job, as {DQ::Queue#push} takes them
        def of(job)
          options = given(job)
          options[:id] = options.fetch(:id, job.job_id).to_s
          options[:group] = options[:group].to_s if options.key?(:group)
          options[:later] = true if options[:replace]
          # Of Active Job the smallest priority is first, of dq the greatest.
          options[:priority] = (-job.priority).clamp(PRIORITIES) if job.priority
          options
        end

        # @private
        # @return [String] the id of the message of a job
        def id(job)
          job.provider_job_id || of(job)[:id]
        end

        private

        def given(job)
          job.class._dq_options.transform_values { |value| value.respond_to?(:call) ? value.call(job) : value }.compact
        end
      end

      # Methods of classes of jobs.
      module ClassMethods
        # Sets options of the messages of this class and of those that inherit from it. A value may be a proc that
        # gets the job.
        #
        # @param options [Hash]
        # @option options [String] :id the queue has one message of an id: if it is there, +perform_later+ returns false
        # @option options [String] :group jobs of one group run one after the other, in their order
        # @option options [Integer] :priority from -128 to 127, the greatest first. +set(priority:)+ and
        #   +queue_with_priority+ are those of Active Job, where the smallest is first, and take precedence.
        # @option options [Integer] :retries how often a job is delivered again that fails or whose process dies; -1:
        #   without a limit
        # @option options [Numeric] :lease after how many seconds a worker that is gone is replaced
        # @option options [Numeric] :ttl after how many seconds a job that has not been done is dead
        # @option options [Numeric] :retain for how many seconds the result of +perform+ is kept
        # @option options [Boolean] :replace whether a job of the same +:id+ that waits is replaced; the place of one
        #   that runs is taken when it ends
        # @return [void]
        def dq_options(**options)
          unknown = options.keys - KNOWN
          unless unknown.empty?
            raise ArgumentError, "unknown options of dq: #{unknown.join(", ")}; known: #{KNOWN.join(", ")}"
          end

          self._dq_options = _dq_options.merge(options)
        end
      end
    end
  end
end
