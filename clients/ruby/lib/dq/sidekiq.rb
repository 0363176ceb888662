# frozen_string_literal: true

require "sidekiq"
require "dq"
require "dq/sidekiq/push"
require "dq/sidekiq/work"
require "dq/sidekiq/leases"
require "dq/sidekiq/fetch"

module DQ
  # Experimental: runs unmodified Sidekiq classes, in the unmodified program +sidekiq+, on queues of dq. Jobs wait in
  # the server until they are due, and a process has them under a lease, so that a killed one loses none.
  #
  # What Sidekiq itself keeps stays where it is: its retry set, its dead set, its statistics and its processes.
  module Sidekiq
    # The queue +default+ of Sidekiq is the key +sidekiq:default+.
    PREFIX = "sidekiq:"
    # Seconds after which the jobs of a process that is gone are delivered again.
    LEASE_SECONDS = 30

    # This Sidekiq has not what the bridge replaces.
    class Unsupported < DQ::Error; end

    class << self
      # @return [DQ::Client] the connections of the bridge
      attr_reader :client
      # @return [Float] seconds
      attr_reader :lease

      # Has Sidekiq push to dq, in this process, and fetch from it, if this process is +sidekiq+. Call it in the
      # initializer that configures Sidekiq. It may be called again, with another server.
      #
      # @param url [String, nil] the server with the module, which need not be that of Sidekiq; nil if other options say
      #   where it is
      # @param lease [Numeric] after how many seconds the jobs of a process that is gone are delivered again; not the
      #   longest time that a job may take, since it is extended
      # @param push_timeout [Numeric] for how many seconds a push is repeated until it is answered
      # @param redis [Hash] other options of the connection, as those of +DQ.redis=+
      # @raise [Unsupported] if this release of Sidekiq is not known to work
      def install(url: nil, lease: LEASE_SECONDS, push_timeout: Client::PUSH_SECONDS, **redis)
        unless lease.is_a?(Numeric) && lease.positive? && lease.to_f.finite?
          raise ArgumentError, "lease is a number of seconds above 0, not #{lease.inspect}"
        end
        if redis.key?(:nodes)
          raise ArgumentError, "nodes: one process of Sidekiq waits at several queues, which a cluster cannot serve"
        end

        check
        @client = Client.new({ url: url, **redis }, push_timeout: push_timeout)
        @lease = lease.to_f
        ::Sidekiq::Client.prepend(Push)
        ::Sidekiq.configure_server { |config| fetch_with(config) }
      end

      # @param name [String] the name of a queue of Sidekiq
      # @return [DQ::Queue] its queue of dq
      def queue(name)
        client.queue(PREFIX + name.to_s)
      end

      private

      # The one private method that the bridge replaces, which is the same from Sidekiq 6.4 to 8.1.
      def check
        client = ::Sidekiq::Client
        known = client.private_method_defined?(:raw_push) && client.instance_method(:raw_push).arity == 1
        return if known

        raise Unsupported, "Sidekiq #{::Sidekiq::VERSION} has no private method Sidekiq::Client#raw_push(payloads), " \
                           "which DQ::Sidekiq replaces: use a release from 6.4 to 8.1, or queue_adapter = :dq"
      end

      # Sidekiq 7 makes a fetcher for each capsule, 6 is given one.
      def fetch_with(config)
        if defined?(::Sidekiq::Capsule)
          config[:fetch_class] = Fetch
        else
          config.options[:fetch] = Fetch.new(config.options)
        end
      end
    end
  end
end
