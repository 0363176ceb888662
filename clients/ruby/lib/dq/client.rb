# frozen_string_literal: true

module DQ
  # Sends commands for all threads of a process, which share a pool of connections.
  class Client
    # How long a push is repeated by default if the server cannot be reached, in seconds.
    PUSH_SECONDS = 10.0
    # How many commands are on their way at a time; the others wait.
    MOST_CONNECTIONS = 100
    # How often a command follows the nodes of a cluster.
    MOST_REDIRECTS = 5

    # @return [Settings]
    attr_reader :settings
    # @return [Numeric] seconds
    attr_reader :push_timeout
    # @return [Array<#push, #handle>] see {Middleware}
    attr_reader :middleware

    # @param redis [Hash, String] the options of redis-client, or a URL
    # @param push_timeout [Numeric] how many seconds a push is repeated until it is answered; 0: it is sent once
    def initialize(redis = {}, push_timeout: PUSH_SECONDS)
      unless push_timeout.is_a?(Numeric) && push_timeout >= 0
        raise ArgumentError, "push_timeout is a number of seconds, not #{push_timeout.inspect}; 0 sends pushes once"
      end

      @settings = Settings.new(redis)
      @push_timeout = push_timeout
      @middleware = Middleware.installed
      @pools = {}.compare_by_identity
      @lock = Mutex.new
    end

    # @param name [String, Symbol]
    # @return [Queue]
    def queue(name) = Queue.new(self, name)

    # Sends a command once.
    # @param words [Array<String, Integer>]
    # @param seconds [Numeric, nil] how long the server may wait before it answers
    def call(*words, seconds: nil)
      check(words)
      redirects = 0
      begin
        config = @settings.config_of(words[1])
        call_once(config, words, seconds)
      rescue ConnectionLost, Moved => error
        redirects += 1
        is_elsewhere = @settings.learn(words[1], error, config) && redirects <= MOST_REDIRECTS
        # The place of the queue and each node that was named.
        raise unless is_elsewhere || (not_reached?(error) && redirects <= @settings.nodes)

        retry
      end
    rescue ConnectionPool::TimeoutError => error # This is no fault of the node.
      raise ConnectionLost.new("all #{MOST_CONNECTIONS} connections are busy: #{error.message}", may_have_run: false)
    end

    # Sends a command until it is answered.
    # @param words [Array<String, Integer>]
    # @param timeout [Numeric] for how many seconds it is repeated; 0: it is sent once
    # @param seconds [Numeric, nil] how long the server may wait before it answers
    # @return [Array(Object, Boolean)] the reply, and whether an earlier attempt may have been carried out
    def repeat(*words, timeout:, seconds: nil)
      last = DQ.now + timeout
      backoff = Backoff.new
      first = nil
      begin
        [call(*words, seconds: seconds), may_have_run?(first)]
      rescue ConnectionLost, Refused => error
        raise unless may_succeed_later?(error)

        first = error if first.nil? || (may_have_run?(error) && !may_have_run?(first))
        pause = backoff.next
        raise first if DQ.now + pause >= last

        sleep pause
        retry
      end
    end

    # Closes the connections.
    def close
      @settings.close
      @lock.synchronize { @pools.each_value { |pool| pool.shutdown(&:close) } }
    end

    private

    def call_once(config, words, seconds)
      pool_of(config).with do |link|
        link.check
        link.call(*words, seconds: seconds)
      end
    end

    # @return [ConnectionPool] the connections to a server
    def pool_of(config)
      @lock.synchronize do
        @pools[config] ||= ConnectionPool.new(size: MOST_CONNECTIONS, timeout: @settings.reply_seconds) do
          @settings.link_to(config)
        end
      end
    end

    # redis-client would make several words of a Hash or an Array.
    def check(words)
      return if words.all? { |word| word.is_a?(String) || word.is_a?(Integer) || word.is_a?(Symbol) }

      raise ArgumentError, "#{words.first}: payloads, ids and names are of the class String"
    end

    def not_reached?(error) = error.is_a?(ConnectionLost) && !error.may_have_run?
    def may_succeed_later?(error) = error.is_a?(ConnectionLost) || error.later?
    def may_have_run?(error) = error.is_a?(ConnectionLost) && error.may_have_run?
  end
end
