# frozen_string_literal: true

require "connection_pool"
require "date"
require "json"
require "logger"
require "redis-client"
require "securerandom"
require "socket"

# Queues of delayed messages in a Redis or Valkey that has loaded the module dq.
#
#   DQ.redis = { url: ENV["REDIS_URL"] }
#   DQ.queue("mail").push("hello", delay: 60)
module DQ
  @lock = Mutex.new
  @redis = {}

  class << self
    # @return [Logger] where workers log; standard error by default
    attr_writer :logger

    # @return [Hash, String] the options of {Settings}, and push_timeout
    attr_reader :redis

    # Sets where the server is: a URL, or a Hash of the options of {Settings} and of push_timeout (in seconds).
    # @raise [ArgumentError] if something in it is not understood
    def redis=(given)
      made = make_client(given)
      @lock.synchronize do
        @redis = given
        @client = made
      end
    end

    # @return [Client] which all threads of the process share
    def client
      @client || @lock.synchronize { @client ||= make_client(@redis) }
    end

    # @param name [String, Symbol]
    # @return [Queue]
    def queue(name) = client.queue(name)

    # @return [Message, nil] the message that the current thread works on
    def message = Thread.current.thread_variable_get(:dq_message)

    # @return [Boolean] whether the worker of this process takes no further messages
    def stopping? = @worker ? @worker.stopping? : false

    # @return [Worker, nil] the worker of this process
    attr_accessor :worker

    # @return [#call, nil] what workers call with each {Worker::Event}, by default nothing
    attr_accessor :hook

    def logger = @logger ||= Logger.new($stderr, progname: "dq")

    private

    def make_client(given)
      return Client.new(given) unless given.is_a?(Hash)

      options = given.transform_keys(&:to_sym)
      push_timeout = options.delete(:push_timeout) || Client::PUSH_SECONDS
      Client.new(options, push_timeout: push_timeout)
    end
  end
end

require "dq/version"
require "dq/monotonic"
require "dq/errors"
require "dq/texts"
require "dq/words"
require "dq/replies"
require "dq/backoff"
require "dq/link"
require "dq/sentinels"
require "dq/settings"
require "dq/middleware"
require "dq/client"
require "dq/queue"
require "dq/message"
require "dq/consumers"
require "dq/worker"
require "dq/railtie" if defined?(Rails::Railtie)
