# frozen_string_literal: true

module DQ
  # One delivery of a message, which a handler works on.
  class Message
    # @return [String] the name of the queue
    attr_reader :queue
    # @return [String]
    attr_reader :id
    # @return [String]
    attr_reader :payload
    # @return [Integer] 1 on the first delivery
    attr_reader :attempt
    # @return [String] names this delivery
    attr_reader :receipt
    # @return [Hash{String => Object}] the other fields of the message: created, due, group, checkpoint and so on
    attr_reader :meta
    # @return [String] the name under which DQ.CONSUMERS lists the worker
    attr_reader :consumer

    # @param queue [String]
    # @param consumer [String]
    # @param fields [Array] what a pop answers for a message
    # @param kind [#call, nil] returns what a message is
    # @yield [checkpoint] how a checkpoint is stored
    def initialize(queue, consumer, fields, kind = nil, &save)
      @queue = queue
      @consumer = consumer
      @id, @payload, @attempt, @receipt, meta = fields
      @meta = Replies.message(meta) || {}
      @save = save
      @kind = kind
      @lock = Mutex.new
      @told = ConditionVariable.new
    end

    # @return [Hash{String => String}]
    def headers = @meta["headers"] || {}

    # @return [String, nil] what the message is, such as the class of its job, if that is known
    def kind
      @kind = @kind.call(self)&.to_s if @kind.respond_to?(:call)
      @kind
    rescue StandardError
      @kind = nil
    end

    # @return [String, nil] what an earlier attempt, or this one, has stored last
    def checkpoint = @meta["checkpoint"]

    # Stores how far the work has come, up to 65536 bytes, for the next attempt and for operators. Does not wait.
    # @param checkpoint [String]
    # @return [void]
    # @raise [ArgumentError] if it is none
    def save(checkpoint)
      raise ArgumentError, "a checkpoint is a String, not a #{checkpoint.class}" unless checkpoint.is_a?(String)

      @meta["checkpoint"] = checkpoint.empty? ? nil : checkpoint
      @save.call(checkpoint)
    end

    # @return [Object] the payload as JSON
    # @raise [BadPayload] if it is none; the error shows nothing of the payload
    def json
      JSON.parse(@payload.dup.force_encoding(Encoding::UTF_8))
    rescue JSON::ParserError, EncodingError
      raise BadPayload, "the payload of #{@payload.bytesize} bytes is not JSON", cause: nil
    end

    # @return [String, nil] why the handler should stop: "lease", "cancelled", "replaced", "buried", "purged",
    #   "released", "stopping" or "time limit"
    def reason = @lock.synchronize { @reason }

    # @return [Boolean] whether the message is no longer the handler's, which then should stop: its outcome is discarded
    def lost? = !reason.nil?

    # Waits, but not beyond the loss of the message.
    # @param seconds [Numeric]
    # @return [void]
    # @raise [Lost] if the message is lost
    def wait(seconds)
      last = DQ.now + seconds
      @lock.synchronize do
        until @reason
          left = last - DQ.now
          return if left <= 0

          @told.wait(@lock, left)
        end
        raise Lost, @reason
      end
    end

    # Has the handler stop. Only the worker calls it.
    # @param reason [String]
    # @return [void]
    def lose(reason)
      @lock.synchronize do
        @reason ||= reason
        @told.broadcast
      end
    end
  end
end
