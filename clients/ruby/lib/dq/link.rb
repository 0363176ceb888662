# frozen_string_literal: true

module DQ
  # One connection. It is opened by its first command, sends nothing twice, and raises the errors of this gem.
  class Link
    # A connection that has been idle for so long may have been closed by the server.
    IDLE_SECONDS = 0.1
    CODES = {
      "QUEUEFULL" => QueueFull, "QUEUECLOSED" => QueueClosed, "TOOLARGE" => TooLarge, "DEADID" => DeadId,
      "OOM" => OutOfMemory
    }.freeze
    UNKNOWN_COMMAND = /\AERR unknown command ['`]?dq\./i
    # The server quotes the payload; redis-client appends the URL.
    QUOTED_WORDS = /, with args.*?( \((?:rediss?|unix):[^ ]*\))?\z/m

    ASKING = ["ASKING"].freeze

    # @param redis [RedisClient]
    # @param asking [Boolean] whether a command that the server refuses is sent again after ASKING: a node of a cluster
    #   to which a slot is being moved serves its keys only then. Once the node owns the slot it refuses none.
    def initialize(redis, asking: false)
      @redis = redis
      @asking = asking
      @used = DQ.now
    end

    # @return [RedisClient::Config] of the server
    def config = @redis.config

    # Sends a command and returns its reply.
    # @param words [Array<String, Integer>]
    # @param seconds [Numeric, nil] how long the server may wait before it answers
    def call(*words, seconds: nil)
      waits = seconds&.positive? # redis-client takes a wait of 0 for one without an end.
      send = ->(to) { waits ? to.blocking_call_v(seconds, words) : to.call_v(words) }
      begin
        translated { send.call(@redis) }
      rescue Moved => error
        raise unless not_yet_owner?(error)

        translated { after_asking(&send) }
      end
    end

    # Sends commands at once.
    # @param commands [Array<Array<String, Integer>>]
    # @return [Array] a reply or an error for each
    def call_all(commands)
      replies = pipelined(commands)
      refused = replies.each_index.select { |index| not_yet_owner?(replies[index]) }
      return replies if refused.empty?

      again = pipelined(refused.flat_map { |index| [ASKING, commands[index]] }).each_slice(2).map(&:last)
      refused.zip(again) { |index, reply| replies[index] = reply }
      replies
    end

    # Opens the connection again if it was closed while it was idle. redis-client notices that only when it waits for a
    # reply, and whether the command was carried out is then not known: a push could not tell a duplicate from itself.
    def check
      call("PING") if DQ.now - @used > IDLE_SECONDS && @redis.connected?
    rescue Refused
      nil # Any answer will do.
    rescue ConnectionLost
      close
    end

    # @return [RedisClient::PubSub] the subscriptions of this connection, which then takes no other commands
    def pubsub = translated { @channels = @redis.pubsub }

    # Closes the connection; another thread that waits for a reply gets an error.
    def close
      @channels&.close # It has taken the connection away from @redis.
      @redis.close
    rescue SystemCallError, IOError, OpenSSL::SSL::SSLError
      nil
    end

    # @param error [RedisClient::Error] what the server answered
    # @return [Refused]
    def self.refused(error)
      text = Texts.utf8(error.message) # It may have words of the command.
      if text.match?(UNKNOWN_COMMAND)
        return NoModule.new("the server has not loaded the module dq: #{text.sub(QUOTED_WORDS, '\\1')}")
      end

      if (node = text[/\A(?:MOVED|ASK) \d+ (\S+)/, 1])
        return (text.start_with?("ASK") ? Asked : Moved).new(text, node)
      end

      CODES.fetch(text[/\A\w+/], Refused).new(text)
    end

    private

    # Such a node has not carried the command out.
    def not_yet_owner?(reply) = @asking && reply.is_a?(Moved) && !reply.is_a?(Asked)

    def pipelined(commands)
      translated do
        replies = @redis.pipelined(exception: false) { |pipe| commands.each { |words| pipe.call_v(words) } }
        replies.map { |reply| reply.is_a?(RedisClient::Error) ? Link.refused(reply) : reply }
      end
    end

    def after_asking
      replies = @redis.pipelined do |pipe|
        pipe.call_v(ASKING)
        yield pipe
      end
      replies.last
    end

    def translated
      was_open = @redis.connected?
      yield.tap { @used = DQ.now }
    rescue RedisClient::HasCommand => error # READONLY and MASTERDOWN are connection errors as well.
      # redis-client would go on with a connection that was refused when it was opened, without a password for example.
      close unless was_open
      raise Link.refused(error)
    rescue RedisClient::UnsupportedServer => error
      raise Refused, "the server does not know HELLO: set protocol: 2 (#{error.message})"
    rescue RedisClient::CannotConnectError, RedisClient::FailoverError => error
      raise ConnectionLost.new(error.message, may_have_run: false)
    rescue RedisClient::ConnectionError, RedisClient::ProtocolError, SystemCallError, IOError => error
      close
      raise ConnectionLost, error.message
    end
  end
end
