# frozen_string_literal: true

# See lib/dq.rb.
module DQ
  # What dq-work calls for the messages of a queue: the handler, and what names the kind of a message in the log.
  Consumer = Struct.new(:handler, :kind)

  @consumers = {}

  class << self
    # Says what dq-work does with the messages of a queue.
    # @param name [String, Symbol]
    # @param kind [#call, nil] returns the kind of a message, for the log
    # @yieldparam message [Message]
    # @return [void]
    def consume(name, kind: nil, &handler)
      raise ArgumentError, "a queue needs a block that handles its messages" unless handler

      @consumers[name.to_s] = Consumer.new(handler, kind)
    end

    # @param name [String]
    # @return [Consumer, nil] of a queue; without one of its own it is that of Active Job, if that is loaded
    def consumer(name)
      @consumers.fetch(name) do
        next unless defined?(::ActiveJob)

        require "dq/active_job" # An application may not have loaded any job yet.
        Consumer.new(ActiveJob::Runner.method(:perform), ActiveJob::Runner.method(:kind))
      end
    end
  end
end
