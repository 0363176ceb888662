# frozen_string_literal: true

module DQ
  # The base of all errors of this gem.
  class Error < StandardError; end

  # The server could not be reached, or the connection broke.
  class ConnectionLost < Error
    # @param text [String]
    # @param may_have_run [Boolean]
    def initialize(text = nil, may_have_run: true)
      super(text)
      @may_have_run = may_have_run
    end

    # @return [Boolean] whether the command may have been carried out; false if no connection could be opened
    def may_have_run? = @may_have_run
  end

  # The server answered with an error.
  class Refused < Error
    # Answers of a server that has not carried out a command and may do so later.
    NOT_NOW = /\A(?:BUSY|LOADING|READONLY|MISCONF|NOREPLICAS|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|UNBLOCKED)\b/
    # The first answer on a connection that the server does not want, whatever was sent there.
    TOO_MANY_CLIENTS = "ERR max number of clients reached"

    # @return [Boolean] whether the same command may succeed later
    def later? = message.match?(NOT_NOW) || message.start_with?(TOO_MANY_CLIENTS)
  end

  # The server is a node of a cluster, and another node holds the queue.
  class Moved < Refused
    # @return [String] host:port
    attr_reader :address

    # @param text [String] what the server answered
    # @param address [String]
    def initialize(text, address)
      super("the server is a node of a cluster, and #{address} holds the queue: give nodes: of the cluster (#{text})")
      @address = address
    end
  end

  # The server is a node of a cluster that moves the slot of the queue to another node, and no longer has the queue.
  class Asked < Moved; end

  # The queue has no room under its MAXLEN.
  class QueueFull < Refused; end

  # The queue is paused for producers and accepts no messages.
  class QueueClosed < Refused; end

  # The payload is larger than the MAXPAYLOAD of the queue.
  class TooLarge < Refused; end

  # The queue holds a dead message of this id: replace, redrive or cancel it first.
  class DeadId < Refused; end

  # The server has reached its maxmemory.
  class OutOfMemory < Refused
    def later? = true
  end

  # The server has not loaded the module dq.
  class NoModule < Refused; end

  # The message that a caller waited for is dead. The text is its last error.
  class Failed < Error
    # @return [String, nil] "rejected", "expired" or "retries"
    attr_reader :reason

    # @param text [String]
    # @param reason [String, nil]
    def initialize(text = nil, reason: nil)
      super(text)
      @reason = reason
    end
  end

  # What a caller waited for is gone: the message was cancelled or purged, or it or its result was not kept.
  class NotKept < Error; end

  # A caller has waited for a result as long as it wanted.
  class WaitTimeout < Error; end

  # A handler raises this if its message can never succeed. The message is dead at once.
  class Reject < Error; end

  # A handler raises this to have its message delivered again. The attempt counts.
  class Retry < Error
    # @return [Numeric, nil] seconds until the next delivery; nil: the backoff of the queue
    attr_reader :after

    # @param text [String]
    # @param after [Numeric, nil] seconds
    def initialize(text = "retry", after: nil)
      super(text)
      @after = after
    end
  end

  # The payload of a message is not JSON. The text shows nothing of it.
  class BadPayload < Error; end

  # What has a handler stop. It is no StandardError, so that neither a `rescue` around a step of the work nor
  # `retry_on StandardError` takes it for an error of the work.
  class Interruption < Exception; end # rubocop:disable Lint/InheritException -- see above

  # The message was taken from its handler: {Message#wait} raises it, with the reason as its text.
  class Lost < Interruption; end

  # A handler took longer than its time limit.
  class TimeLimit < Interruption; end
end
