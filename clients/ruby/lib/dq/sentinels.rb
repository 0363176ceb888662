# frozen_string_literal: true

module DQ
  # Learns that Sentinels have named another master. The one before may live on for seconds, and what it accepts then is
  # lost. redis-client asks a Sentinel only when it opens a connection.
  class Sentinels
    CHANNEL = "+switch-master"
    # The pause before a Sentinel that is away is asked again.
    PAUSE_SECONDS = 1.0
    # How long a subscription may be silent before the Sentinel is asked for an answer, and how long that may take.
    QUIET_SECONDS = 10.0
    ANSWER_SECONDS = 5.0

    # @param config [RedisClient::SentinelConfig]
    # @yield when there is another master
    def initialize(config, &switched)
      @config = config
      @switched = switched
      @lock = Mutex.new
      @threads = []
      @master = nil # The one that was announced or asked for last.
    end

    # Starts a thread for each Sentinel, also in a process that was forked.
    # @return [void]
    def watch
      @lock.synchronize do
        next if @process == Process.pid

        @process = Process.pid
        @threads = @config.sentinels.map { |sentinel| Thread.new { listen(sentinel) } }
        @threads.each { |thread| thread.name = "dq-sentinel" }
      end
    end

    # Ends the threads.
    # @return [void]
    def close
      @lock.synchronize do
        @threads.each(&:kill)
        @process = nil
      end
    end

    private

    def listen(sentinel)
      loop do
        hear(sentinel)
      rescue RedisClient::Error, SystemCallError, IOError
        sleep PAUSE_SECONDS # It is away, or refuses: then the end of connections shows a failover.
      end
    end

    def hear(sentinel)
      channels = sentinel.new_client.pubsub
      channels.call("SUBSCRIBE", CHANNEL)
      next_event(channels)
      heard(*ask(sentinel)) # It may have announced one while nobody listened.
      loop do
        kind, _channel, text = next_event(channels)
        announced(text) if kind == "message"
      end
    ensure
      channels&.close
    end

    def next_event(channels)
      event = channels.next_event(QUIET_SECONDS)
      return event if event

      channels.call("SUBSCRIBE", CHANNEL)
      channels.next_event(ANSWER_SECONDS) || raise(RedisClient::ConnectionError, "the Sentinel does not answer")
    end

    # @return [Array(String, String), nil] the host and the port of the master
    def ask(sentinel)
      client = sentinel.new_client
      client.call("SENTINEL", "get-master-addr-by-name", @config.name)
    ensure
      client&.close
    end

    # @param text [String] the name, the host and the port of the old master, those of the new one
    def announced(text)
      name, _host, _port, host, port = text.split
      heard(host, port) if name == @config.name
    end

    # A connection that was opened again may have found the new master before it is announced, and then the others are
    # still at the old one. Or it may have found the old one again, at a Sentinel that is late.
    def heard(host = nil, port = nil)
      return unless host

      master = [host, port]
      found = [@config.host, @config.port.to_s] if @config.resolved?
      is_known = @lock.synchronize do
        last = @master || found
        @master = master
        [last, found].compact.all?(master)
      end
      @switched.call unless is_known
    end
  end
end
