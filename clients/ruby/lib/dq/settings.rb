# frozen_string_literal: true

require "redis-client"
require "uri"

module DQ
  # Where the server is, and how connections to it are made.
  #
  # The options are those of redis-client: url (redis://, rediss://, unix://), host, port, path, db, username, password,
  # ssl, ssl_params, protocol, timeout, connect_timeout, read_timeout, write_timeout, driver, id; and for a Sentinel
  # name, sentinels, sentinel_username and sentinel_password. For a cluster, nodes are URLs of some of its nodes, and
  # all other options are those of each node.
  class Settings
    CONNECT_SECONDS = 2.0
    REPLY_SECONDS = 5.0
    # The parameters of a URL. redis-client ignores all others, and protocol as well.
    PARAMETERS = %w[db protocol].freeze
    TIMES = %i[timeout connect_timeout read_timeout write_timeout].freeze

    # @return [Hash{Symbol => Object}] the options
    attr_reader :options

    # @param given [Hash{Symbol => Object}, String] the options, or a URL
    # @raise [ArgumentError] if something in it is not understood
    def initialize(given)
      @options = options = plain(given.is_a?(Hash) ? given.transform_keys(&:to_sym) : { url: given })
      if options.key?(:reconnect_attempts)
        raise ArgumentError, "reconnect_attempts has no effect: a push is repeated for push_timeout seconds"
      end

      @lock = Mutex.new
      @shared = options.except(:nodes)
      nodes = options.key?(:nodes) ? Array(options[:nodes]) : [nil]
      raise ArgumentError, "nodes: name the URLs of some nodes of the cluster" if nodes.empty?

      @configs = nodes.map { |url| config(url ? { **@shared, url: url } : @shared) }

      @places = {}
      @nodes = {}
      @asking = {}.compare_by_identity
      @links = ObjectSpace::WeakMap.new
      @sentinels = Sentinels.new(@configs.first) { leave_master } if of_master?(options)
    end

    # @return [Integer] the number of the database
    def db = @configs.first.db

    # @return [Float] how many seconds a reply may take
    def reply_seconds = @configs.first.read_timeout

    # @return [Integer] how many nodes of a cluster were named; 0 without one
    def nodes = @options.key?(:nodes) ? @configs.size : 0

    # @param queue [String, nil]
    # @return [RedisClient::Config] of the server that is to be asked for a queue
    def config_of(queue) = @lock.synchronize { @places[queue] || @configs.first }

    # @param queue [String] a connection to the server that holds it
    # @param options [Hash] of RedisClient#initialize, such as read_timeout
    # @return [Link] a new connection
    def link(queue, **options) = link_to(config_of(queue), **options)

    # @param config [RedisClient::Config] what {#config_of} returned
    # @return [Link] a new connection
    def link_to(config, **options)
      @sentinels&.watch
      @lock.synchronize do
        Link.new(config.new_client(**options), asking: @asking.key?(config)).tap { |link| @links[link] = true }
      end
    end

    # Has the threads end that watch Sentinels. A new connection starts them again.
    # @return [void]
    def close = @sentinels&.close

    # Learns from an error where a queue of a cluster is, or is no longer. redis-client has no clusters.
    # @param queue [String, nil]
    # @param error [Error]
    # @param config [RedisClient::Config, nil] of the server that was asked
    # @return [Boolean] whether the queue is now to be asked for elsewhere
    def learn(queue, error, config)
      return false unless @options.key?(:nodes)

      @lock.synchronize do
        case error
        when Moved then @places[queue] = node_of(error)
        when ConnectionLost then pass_over(queue, config)
        end
      end
      error.is_a?(Moved)
    end

    private

    # A replica (role:) is none that is replaced.
    def of_master?(options) = options.key?(:sentinels) && options.fetch(:role, :master).to_sym == :master

    # Other threads may have passed over the same node already, and the one that is asked now may live.
    def pass_over(queue, config)
      if @places.key?(queue)
        @places.delete(queue) if @places[queue].equal?(config)
      elsif @configs.first.equal?(config)
        @configs.rotate!
      end
    end

    # Ends all connections, since what the old master still answers is lost. They are opened to the new one.
    def leave_master
      @configs.first.reset
      @lock.synchronize { @links.keys }.each(&:close)
    end

    # Numbers instead of Durations of Rails, since the process of a guard gets the options, too.
    def plain(options)
      options.to_h { |name, value| [name, TIMES.include?(name) && value.is_a?(Numeric) ? value.to_f : value] }
    end

    def config(options)
      options = read_url({ **options, url: options[:url].to_s }) if options[:url]
      options = with_timeouts(options)
      options.key?(:sentinels) ? RedisClient.sentinel(**options) : RedisClient.config(**options)
    end

    # @return [RedisClient::Config] of the node that an error names
    def node_of(error)
      asking = error.is_a?(Asked)
      @nodes[[error.address, asking]] ||= config_at(error.address).tap { |config| @asking[config] = true if asking }
    end

    def config_at(address)
      host, _, port = address.rpartition(":")
      known = @configs.first
      user = known.password ? { username: known.username, password: known.password } : {}
      config({ ssl: known.ssl, **user, **@shared, host: host.empty? ? known.host : host.delete("[]"), port: port })
    end

    # redis-client would send a pop again after reconnecting, without the worker's knowledge.
    def with_timeouts(options)
      reply = options.fetch(:timeout, REPLY_SECONDS)
      connect = options.fetch(:timeout, CONNECT_SECONDS)
      { read_timeout: reply, write_timeout: reply, connect_timeout: connect, **options, reconnect_attempts: 0 }
    end

    # Takes what redis-client ignores out of the URL, and refuses what it would drop or misunderstand.
    def read_url(options)
      raise ArgumentError, "the URL has a '#': write it as %23 in a password or a path" if options[:url].include?("#")

      raise ArgumentError, "the URL of the server is empty" if options[:url].strip.empty?

      uri = URI(options[:url])
      given = URI.decode_www_form(uri.query.to_s)
      given.each { |name, value| check_parameter(uri, given, name, value) }
      check_database(uri)
      protocol = given.to_h["protocol"]
      protocol ? { protocol: Integer(protocol), **options } : options
    rescue URI::InvalidURIError # Its text has the whole URL, with the password.
      raise ArgumentError, "the URL of the server cannot be parsed", cause: nil
    end

    def check_parameter(uri, given, name, value)
      unless PARAMETERS.include?(name)
        raise ArgumentError, "the URL has a parameter #{name.inspect}, which is not known; known are db and protocol"
      end
      return if given.count { |other, _| other == name } == 1 && value.match?(/\A\d+\z/) && !two_databases?(uri, name)

      raise ArgumentError, "the URL needs one number for its parameter #{name.inspect}"
    end

    def two_databases?(uri, name)
      name == "db" && uri.scheme != "unix" && uri.path.to_s.length > 1
    end

    def check_database(uri)
      return if uri.scheme == "unix" || uri.path.to_s.match?(%r{\A(/|/\d+)?\z})

      given = uri.path[1..].inspect
      raise ArgumentError, "the database in the URL is one number, such as redis://host:6379/0, not #{given}"
    end
  end
end
