# frozen_string_literal: true

module DQ
  class Worker
    # The thread that receives a notice when a command takes a message away: the server publishes it on a channel of
    # each queue. Notices are hints. If the connection breaks, or the user has no right to a channel, losses are noticed
    # when leases are extended.
    class Listener
      # How long an answer may take, in seconds.
      ANSWER_SECONDS = 5.0
      # How long a subscription may be silent before the server is asked for an answer.
      QUIET_SECONDS = 10.0

      # @return [Boolean] whether it has tried to subscribe
      attr_reader :listening

      def initialize(worker)
        @worker = worker
        @listening = false
        @lanes = worker.lanes.to_h { |lane| ["__dq@#{worker.settings.db}__:#{lane.name}".b, lane] }
      end

      # Listens until the worker is closed, or no channel is left.
      def run
        backoff = Backoff.new
        until @lanes.empty? || @worker.closed?
          begin
            listen(backoff)
          rescue Refused
            heard_or_not
          rescue ConnectionLost => error
            @worker.settings.learn(@lanes.each_value.first&.name, error, @link&.config)
          ensure
            @channels&.close
          end
          @worker.wait(backoff.next) unless @worker.closed?
        end
      end

      private

      def listen(backoff)
        @link = @worker.settings.link(@lanes.each_value.first.name)
        @channels = @link.pubsub
        @lanes.keys.each { |channel| subscribe(channel) } # rubocop:disable Style/HashEachMethods -- it removes some
        @lanes.each_value(&:ask_for_losses) # Something may have been missed.
        backoff.reset
        heard_or_not
        follow until @lanes.empty? || @worker.closed?
      end

      # A worker is ready without notices, too, but not before it has tried to subscribe.
      def heard_or_not
        @listening = true
        @worker.consuming
      end

      def subscribe(channel)
        send_word(channel)
        loop do
          event = next_event(ANSWER_SECONDS)
          raise ConnectionLost, "a subscription was not answered" if event.nil?
          return refused(channel, event) if event.is_a?(RedisClient::PermissionError)
          raise Link.refused(event) if event.is_a?(RedisClient::Error)
          return if event.first == "subscribe"

          heard(event)
        end
      end

      # Hands one event on. After a silence it subscribes once more, which needs no further right and is confirmed.
      def follow
        event = next_event(QUIET_SECONDS)
        return heard(event) if event

        send_word(@lanes.keys.first)
        event = next_event(ANSWER_SECONDS)
        raise ConnectionLost, "the server does not answer" if event.nil?

        heard(event)
      end

      def heard(event)
        kind, channel, notice = event
        return unless kind == "message"

        lane = @lanes[channel.b] or return
        reason, receipt = notice.b.split(" ", 2)
        receipt ? lane.noticed(reason.force_encoding(Encoding::UTF_8), receipt) : lane.ask_for_losses
      end

      def refused(channel, error)
        lane = @lanes.delete(channel)
        name = channel.dup.force_encoding(Encoding::UTF_8)
        @worker.emit_of_queue(:refused, lane.name,
                              "losses are noticed late, without the channel #{name}: #{error.message}")
      end

      def send_word(channel) = link_errors { @channels.call("SUBSCRIBE", channel) }

      def next_event(seconds) = link_errors { @channels.next_event(seconds) }

      def link_errors
        yield
      rescue RedisClient::ConnectionError, RedisClient::ProtocolError, SystemCallError, IOError => error
        raise ConnectionLost, error.message
      rescue NoMethodError => error # Another thread has closed the link: redis-client has no connection there then.
        raise unless error.receiver.nil?

        raise ConnectionLost, "the connection was closed"
      end
    end
  end
end
