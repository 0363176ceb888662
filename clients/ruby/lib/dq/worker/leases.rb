# frozen_string_literal: true

module DQ
  class Worker
    # How long the leases of a queue last, and when each is to be extended.
    class Leases
      # The lease of a queue that does not exist yet, or whose settings this user may not read: the server's default.
      DEFAULT_MS = 30_000
      # How long a pop waits, in milliseconds.
      BLOCK_MS = 5000

      # @return [ServerTime]
      attr_reader :server_time

      # @param asked_ms [Integer, nil] the lease that the user of the worker wants
      def initialize(worker, asked_ms)
        @worker = worker
        @asked_ms = asked_ms
        @lease_ms = asked_ms || DEFAULT_MS
        @longest_ms = 0
        @server_time = ServerTime.new
      end

      # @return [Float] how long a lease of a message without one of its own lasts, in seconds
      def seconds = (@longest_ms.positive? ? [@lease_ms, @longest_ms].min : @lease_ms) / 1000.0

      # The lease that a command asks for. Without one, that of the message counts, else that of the queue. How long
      # that of a message lasts only the time of the server tells, so without it that of the queue is asked for.
      # @return [Array<String, Integer>]
      def words
        return ["LEASE", @asked_ms] if @asked_ms

        @server_time.known? ? [] : ["LEASE", @lease_ms]
      end

      # @return [Integer] how long a pop waits, in milliseconds. Leases that count from its sending must not be over
      #   when its reply arrives.
      def block_ms = @server_time.known? ? BLOCK_MS : (seconds * 500).to_i.clamp(1, BLOCK_MS)

      # Reads the settings of the queue from a reply to DQ.INFO.
      def learn(reply)
        info = Replies.map(reply)
        @lease_ms = @asked_ms || info["lease"] || DEFAULT_MS
        @longest_ms = info["maxlease"] || 0
      end

      # @param deadline [Integer, nil] of a message that was popped
      # @param begun [Float, nil] when its pop was sent, if the time of the server was not known then
      # @return [Array(Float, Boolean)] how many seconds its lease lasts from now, and whether that is certain
      def left(deadline, begun, now)
        left = @server_time.left(deadline, now)
        return [left, true] if left

        [seconds - (now - (begun || now)), !begun.nil?]
      end

      # A command that was sent at a time has extended a lease.
      # @param deadline [Integer]
      def extended(delivery, deadline, sent)
        now = DQ.now
        grown = delivery.deadline ? (deadline - delivery.deadline) / 1000.0 : Float::INFINITY
        passed = sent - delivery.heard
        left = @server_time.left(deadline, now) || left_without_time(delivery, grown, passed, sent, now)
        delivery.due = longest?(delivery, deadline, passed) ? Float::INFINITY : now + ([left, seconds].min / 2)
        # It is extended again at once, and then it is known how long that lasts.
        delivery.due = now if jumped?(delivery, grown, passed, now) && @server_time.expire
        delivery.deadline = deadline
        delivery.heard = now
        delivery.end = now + left
      end

      private

      def left_without_time(delivery, grown, passed, sent, now)
        left = seconds - (now - sent)
        cut = @longest_ms.positive? && grown < (passed * (1 - ServerTime::DRIFT)) - ServerTime::ROUNDING_SECONDS
        cut ? [left, delivery.end + grown - now].min : left
      end

      # MAXLEASE permits nothing more to a lease that has not grown.
      def longest?(delivery, deadline, passed)
        deadline == delivery.deadline && @longest_ms.positive? && passed > ServerTime::ROUNDING_SECONDS
      end

      def jumped?(delivery, grown, passed, now)
        return false if delivery.deadline.nil? || (@longest_ms.positive? && grown < passed)

        ServerTime.jumped?(grown, now - delivery.heard)
      end
    end
  end
end
