# frozen_string_literal: true

module DQ
  class Worker
    # A message that a worker holds. All times are seconds of {DQ.now}, but deadline.
    class Delivery
      # @return [Message]
      attr_reader :message
      # @return [Float] when it arrived
      attr_reader :begun
      # @return [Float] when the lease expires, by the clock of this process
      attr_accessor :end
      # @return [Float] when the lease is to be extended: not later than at half of the queue's lease, as the clock of
      #   the server may be set
      attr_accessor :due
      # @return [Integer, nil] when the lease expires, in Unix milliseconds by the clock of the server
      attr_accessor :deadline
      # @return [Float] when the server reported that
      attr_accessor :heard
      # @return [Float, nil] when the handler has reached its time limit
      attr_accessor :limit
      # @return [Thread, nil] which the handler runs in
      attr_accessor :thread
      # @return [Boolean] whether the outcome is decided
      attr_accessor :decided
      # @return [Boolean] whether the lease has ended while the outcome was not answered
      attr_accessor :late
      # @return [Integer] what is to come: the end of the handler, and the answer to its outcome
      attr_accessor :parts

      # @param message [Message]
      # @param begun [Float]
      # @param left [Float] for how many seconds it is leased
      # @param lease [Float] seconds, the lease of the queue
      def initialize(message, begun, left, lease)
        @message = message
        @begun = @heard = begun
        @end = begun + left
        @due = begun + ([left, lease].min / 2)
        @deadline = message.meta["deadline"]
        @receipt = message.receipt.b
        @decided = @late = false
        @parts = 2
      end

      # @return [String] names this delivery, in an encoding in which receipts of all replies are equal
      attr_reader :receipt
    end
  end
end
