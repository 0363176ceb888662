# frozen_string_literal: true

module DQ
  module Sidekiq
    # A job that this process has, as Sidekiq expects of a fetcher.
    class Work
      ACK = ["DQ.ACK"].freeze
      GIVE_BACK = ["DQ.NACK", "NOCOUNT"].freeze
      ABANDON = ["DQ.NACK", "ERROR", "the thread of the job ended without an outcome"].freeze
      private_constant :ACK, :GIVE_BACK, :ABANDON

      # @return [String] the key of its queue
      attr_reader :queue
      # @return [String] the job as JSON
      attr_reader :job
      # @return [String]
      attr_reader :receipt
      # @return [Thread] the thread that works on it
      attr_reader :thread

      # @param leases [Leases] what keeps its lease
      # @param message [Array] what DQ.MPOP returned: the id, the payload, the attempt, the receipt
      def initialize(leases, queue, message)
        @leases = leases
        @queue = queue
        @id, payload, _attempt, @receipt = message
        @job = payload.dup.force_encoding(Encoding::UTF_8)
        @thread = Thread.current
        @expires = DQ.now + DQ::Sidekiq.lease
        @lock = Mutex.new
      end

      # @return [String] the name by which Sidekiq knows the queue
      def queue_name
        queue.delete_prefix(PREFIX)
      end

      # The job is done, or Sidekiq has put it into its retry set or its dead set.
      def acknowledge
        settle(ACK)
      end

      # The job goes back to its place. The delivery does not count.
      def requeue
        settle(GIVE_BACK)
      end

      # Sends the outcome again if the thread of the job was told to end while it sent that. Without an outcome, not
      # even a retry could be stored, and the delivery counts.
      def abandon
        settle(ABANDON) || send_outcome
      end

      # Sends the outcome again as {#abandon} does, or gives the job back, before the process ends.
      def give_back
        settle(GIVE_BACK) || send_outcome
      end

      # @return [Boolean] whether it has an outcome
      def decided?
        @lock.synchronize { !@outcome.nil? }
      end

      # @param sent [Float] when its lease was extended
      def extended(sent)
        @expires = sent + DQ::Sidekiq.lease
      end

      # Someone else may have the job.
      def lost
        ::Sidekiq.logger.warn("dq: lost the job #{@id} of #{queue_name}: its lease is over, or a command has taken it")
      end

      private

      # The first outcome counts: Sidekiq may give a job back that ends at this moment.
      #
      # @return [Boolean] whether there was none
      def settle(outcome)
        first = @lock.synchronize { @outcome ? false : @outcome = outcome }
        return false unless first

        lost if [nil, 0].include?(send_outcome)
        true
      end

      # Sends the outcome until the server answers, or until the lease is over.
      def send_outcome
        command, *options = @outcome
        reply, = DQ::Sidekiq.client.repeat(command, queue, receipt, *options, timeout: [@expires - DQ.now, 0].max)
        @leases.release(self)
        reply
      rescue DQ::Error => error
        @leases.release(self)
        ::Sidekiq.logger.error("dq: #{command} of the job #{@id} of #{queue_name} was not accepted, so the job will " \
                               "run again: #{error.message}")
        false
      end
    end
  end
end
