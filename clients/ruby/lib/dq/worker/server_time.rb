# frozen_string_literal: true

module DQ
  class Worker
    # The clock of a server, against which a worker counts leases: the server says when each one ends, by its own clock.
    # Nothing that the worker measures by itself is as exact: the reply to a pop may be late, and a message may have a
    # lease of its own, which the reply does not name.
    class ServerTime
      # By how much the clocks of two machines may differ after a time, as a part of it, and besides, in seconds, since
      # deadlines are whole milliseconds.
      DRIFT = 0.001
      ROUNDING_SECONDS = 0.002
      # For how long what is known counts.
      FRESH_SECONDS = 5.0
      JUST_SECONDS = 0.2
      # A deadline that moves by more or less than the time that has passed, and this much of it, shows that a clock was
      # set.
      JUMP_SECONDS = 0.5
      JUMP = 0.1

      # @param grown [Float] by how many seconds a deadline was moved
      # @param passed [Float] seconds
      # @return [Boolean] whether that shows that the clock of the server, or the lease of the queue, was set
      def self.jumped?(grown, passed) = grown.zero? || (grown - passed).abs > JUMP_SECONDS + (JUMP * passed)

      def initialize
        @ahead = nil
        @read_at = -Float::INFINITY
      end

      # Asks the server for its time if it was not asked lately. Somebody may have set its clock.
      def refresh(link)
        read(link) if DQ.now - @read_at > FRESH_SECONDS
      end

      # Asks the server for its time. Without the right to that, leases are counted from the commands that begin them.
      def read(link)
        @read_at = sent = DQ.now
        seconds, microseconds = link.call("TIME")
        note(seconds.to_i + (microseconds.to_i / 1_000_000r).to_f - sent, DQ.now - sent)
      rescue Refused => error
        raise if error.later?

        @ahead = nil
      end

      # @return [Boolean] whether the server has told its time
      def known? = !@ahead.nil?

      # Somebody may have set the clock of the server: the next refresh asks for its time, if that was not just done.
      # @return [Boolean] whether it will
      def expire
        old = DQ.now - @read_at > JUST_SECONDS
        @read_at = -Float::INFINITY if old
        old
      end

      # @param deadline [Integer, nil] Unix milliseconds by the clock of the server
      # @return [Float, nil] how many seconds are left until then; nil if that is not known
      def left(deadline, now)
        return nil if @ahead.nil? || deadline.nil?

        left = (deadline / 1000.0) - (now + @ahead)
        left - (left.abs * DRIFT) - ROUNDING_SECONDS
      end

      private

      # By how much the clock of the server is ahead of ours, never less than it is: a lease then ends too early for us.
      def note(ahead, took)
        @ahead = ahead unless @ahead && ahead.between?(@ahead, @ahead + took) # Then what is known is as good.
      end
    end
  end
end
