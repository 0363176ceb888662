# frozen_string_literal: true

module DQ
  # A queue as producers and operators use it. It is created by its first push. All times are in seconds.
  class Queue
    # A wait for a result is made of shorter ones, so that a broken connection is noticed.
    AWAIT_SECONDS = 2.0
    # How long a result is kept beyond the time for which its caller waits.
    KEPT_SECONDS = 60.0
    # How much longer than a wait its reply may take.
    LATE_SECONDS = 1.0

    # @return [String]
    attr_reader :name

    # @param client [Client]
    # @param name [String, Symbol]
    def initialize(client, name)
      @client = client
      @name = name.to_s
    end

    # Adds a message. If the connection breaks, the push is repeated with the same id, so the message is made once.
    #
    # @param payload [String]
    # @param options [Hash]
    # @option options [String] :id an id of your own, unique in the queue
    # @option options [Numeric] :delay due so many seconds after now
    # @option options [Time, Numeric] :at due at this time, or at these Unix seconds
    # @option options [Integer] :priority -128 to 127; among ready messages, a higher one is delivered first
    # @option options [String] :group messages of a group are delivered in order, by default one at a time
    # @option options [Integer] :retries redeliveries after the first delivery; -1: no limit
    # @option options [Numeric] :lease seconds after which a delivery is made again if its worker is gone
    # @option options [Numeric] :ttl seconds after which the message is dead if it is not completed
    # @option options [Numeric] :retain seconds for which the message and its result are kept after its completion
    # @option options [Hash{String => String}] :headers
    # @option options [String] :batch the batch that the message joins, see {#follow}
    # @option options [true] :replace replace the message that has the id
    # @option options [Numeric] :max_wait with replace: seconds after the first push of the chain, due at the latest
    # @option options [true] :later with replace: if that message is being worked on, wait for the end of its delivery
    # @option options [Integer] :attempt how often the message was delivered before its push
    # @option options [String] :error the error of its last delivery before its push
    # @option options [String] :checkpoint the checkpoint that it had before its push
    # @option options [true] :dead it is dead from its push on
    # @option options [String] :reason with dead: why, by default "rejected"
    # @return [String, nil] the id; nil if the queue holds a message of that id
    # @raise [QueueFull, QueueClosed, TooLarge, DeadId, OutOfMemory, Refused, ConnectionLost]
    def push(payload, **options) = send_push(payload, options, @client.push_timeout)

    # Adds messages in one step.
    # @param payloads [Array<String>]
    # @param ids [Array<String>, nil] their ids
    # @param options [Hash] see {#push}; they are those of each message
    # @return [Array<String, nil, DeadId>] what {#push} returns or raises for each
    def push_many(payloads, ids: nil, **options)
      return [] if payloads.empty?
      raise ArgumentError, "there are #{payloads.size} payloads but #{ids.size} ids" if ids && ids.size != payloads.size

      made = ids.nil? && repeats?
      ids = payloads.map { SecureRandom.uuid } if made
      words = ["DQ.MPUSH", @name, payloads.size, *payloads, *(["IDS", *ids] if ids)]
      words.concat(Words.of(decorated(options), Words::PUSH - [:id]))
      answers, may_be_there = @client.repeat(*words, timeout: @client.push_timeout)
      answers.zip(ids || []).map { |answer, id| pushed(answer, made || may_be_there ? id : nil) }
    end

    # Pushes a message and waits for the result of its handler.
    # @param payload [String]
    # @param timeout [Numeric] seconds
    # @param options [Hash] see {#push}
    # @return [String, nil] see {#await}
    def push_and_wait(payload, timeout:, **options)
      options = { retain: timeout + KEPT_SECONDS, **options }
      last = DQ.now + timeout
      id = send_push(payload, options, [@client.push_timeout, timeout].min)
      await(id || options[:id], timeout: last - DQ.now) # A duplicate is the same message.
    end

    # Waits until a message is done, through broken connections, too. It must have been pushed with retain.
    # @param id [String]
    # @param timeout [Numeric] seconds
    # @return [String, nil] the result of its handler, nil if there was none
    # @raise [Failed] if the message is dead
    # @raise [NotKept] if the message is gone, or its result was larger than the server keeps
    # @raise [WaitTimeout] if it is not done in time
    def await(id, timeout:)
      last = DQ.now + timeout
      loop do
        left = [last - DQ.now, 0].max
        wait = [AWAIT_SECONDS, left].min
        done = repeated(left, "DQ.AWAIT", id, "BLOCK", [(wait * 1000).round, 1].max, seconds: wait)
        return result(id, Replies.message(done)) if done

        waiting = Replies.message(repeated(left, "DQ.GET", id))
        raise NotKept, "#{id} is gone: it was cancelled or purged, or completed without retain" unless waiting
        return result(id, waiting) if %w[done dead].include?(waiting["state"])
        raise WaitTimeout, "the message #{id} is still #{waiting["state"]}" if DQ.now >= last
      end
    end

    # Declares a recurring message.
    # @param id [String]
    # @param payload [String]
    # @param options [Hash] those of each message: priority, retries, lease, group, headers, ttl (see {#push})
    # @option options [Numeric] :every a run is due at each multiple of so many seconds since the Unix epoch
    # @option options [Numeric] :offset moves all runs of every by so many seconds
    # @option options [String] :cron five fields, or @hourly, @daily, @weekly, @monthly, @yearly
    # @option options [String] :tz the time zone of cron, UTC by default
    # @option options [Time, Numeric] :at the time of the first run
    # @option options [Time, Numeric] :until the last time at which a run may be due
    # @option options [Integer] :times the series ends after so many runs
    # @return [String] "created", "changed" or "unchanged"
    def schedule(id, payload, **options)
      ask("DQ.SCHEDULE", id, payload, *Words.of(decorated(options), Words::SCHEDULE))
    end

    # Sets the message that follows once all messages that were pushed with this batch have ended. It has the headers
    # dq-batch, dq-batch-total, dq-batch-acked, dq-batch-dead and dq-batch-cancelled. This is sent once, because the
    # batch may have ended when a second command came.
    # @param batch [String]
    # @param payload [String]
    # @param options [Hash] id, delay, priority, retries, lease, group and headers (see {#push})
    # @return [Integer] how many messages are left
    def follow(batch, payload, **options)
      ask("DQ.BATCH", batch, "THEN", payload, *Words.of(decorated(options), Words::FOLLOW))
    end

    # @return [Hash{String => Object}, nil] the progress of a batch as DQ.BATCHINFO names it
    def batch_info(batch) = Replies.fields(ask("DQ.BATCHINFO", batch))

    # Removes the messages of a batch that are not dead, and what follows.
    # @return [Integer] how many were removed
    def cancel_batch(batch) = ask("DQ.BATCH", batch, "CANCEL")

    # Removes a message.
    # @return [String, nil] the state that it was in, nil if it was not there
    def cancel(id) = cancel_many([id]).first

    # Removes messages.
    # @return [Array<String, nil>] the state that each was in, nil for those that were not there
    def cancel_many(ids) = ask("DQ.CANCEL", *ids)

    # Changes the due time or the priority of a message.
    # @param delay [Numeric, nil] seconds
    # @param at [Time, Numeric, nil]
    # @param priority [Integer, nil]
    # @return [Boolean] whether it was delayed or ready
    # @raise [ArgumentError] if none of these is given
    def reschedule(id, delay: nil, at: nil, priority: nil)
      changes = { delay: delay, at: at, priority: priority }.compact
      raise ArgumentError, "say what is to change: delay:, at: or priority:" if changes.empty?

      ask("DQ.RESCHEDULE", id, *Words.of(changes)) == 1
    end

    # Makes delayed messages due now: all, a number of them, or those that are due by a time.
    # @param count [Integer, nil]
    # @param options [Hash]
    # @option options [Time, Numeric] :until
    # @return [Integer] how many
    def promote(count = nil, **options)
      ask("DQ.PROMOTE", *Words.of({ count: count, **options }, %i[count until]))
    end

    # Makes dead messages live again: all, a number of them, or those that the options select.
    # @param count [Integer, nil]
    # @param ids [Array<String>] only these
    # @param options [Hash]
    # @option options [Numeric] :delay due so many seconds after now
    # @option options [Numeric] :older only those that have been dead for so many seconds
    # @option options [String] :reason only those that died for it: "retries", "rejected" or "expired"
    # @return [Integer] how many
    def redrive(count = nil, ids: [], **options)
      named = ids.empty? ? [] : ["IDS", ids.size, *ids]
      ask("DQ.REDRIVE", *named, *Words.of({ count: count, **options }, %i[count delay older reason]))
    end

    # Removes the messages of some states, or of all.
    # @param states [Array<String, Symbol>]
    # @param options [Hash]
    # @option options [Integer] :count at most so many
    # @option options [String] :group only those of a group
    # @option options [true] :recurring schedules, too
    # @option options [Numeric] :older only those that have been in their state for so many seconds
    # @return [Integer] how many
    def purge(*states, **options)
      ask("DQ.PURGE", *states.map(&:to_s), *Words.of(options, %i[count group recurring older]))
    end

    # @return [Hash{String => Object}, nil] a message with its fields as DQ.GET names them
    def get(id) = Replies.message(ask("DQ.GET", id))

    # @param state [String, Symbol]
    # @param count [Integer]
    # @param group [String, nil]
    # @return [Array<Hash{String => Object}>] the first messages of a state; dead and done ones newest first
    def peek(state = "ready", count = 1, group: nil)
      ask("DQ.PEEK", state.to_s, *Words.of({ count: count, group: group })).map { |fields| Replies.message(fields) }
    end

    # @param state [String, Symbol, nil]
    # @param group [String, nil]
    # @return [Integer] the number of messages in a state, or of all that are neither dead nor done
    def len(state = nil, group: nil) = ask("DQ.LEN", *[state&.to_s].compact, *Words.of({ group: group }))

    alias size len
    alias length len

    # @return [Hash{String => Object}, nil] counts, settings and totals as DQ.INFO names them
    def info = Replies.fields(ask("DQ.INFO"))

    # Suspends delivery (:out), new messages (:in) or both (:all), or the delivery of one group.
    # @param seconds [Numeric, nil] for how long; nil: until {#resume}
    # @param flow [Symbol, String]
    # @param group [String, nil]
    # @return [void]
    def pause(seconds = nil, flow: :out, group: nil)
      ask("DQ.PAUSE", *concerned(flow, group), *Words.of({ for: seconds }))
    end

    # Resumes delivery (:out), new messages (:in) or both (:all), or the delivery of one group.
    # @return [void]
    def resume(flow: :all, group: nil) = ask("DQ.RESUME", *concerned(flow, group))

    # Creates the queue with these settings, or changes them if it exists. Programs call it when they start.
    # @param settings [Hash] see docs/settings.md; times are in seconds, backoff is two of them, rate and group_rate are
    #   a number of deliveries and a time
    # @return [void]
    def declare(**settings) = ask("DQ.ALTER", "MKQUEUE", *Words.of(settings, Words::SETTINGS))

    # Creates the queue.
    # @raise [Refused] if it exists with other settings
    # @return [void]
    def create(**settings) = ask("DQ.CREATE", *Words.of(settings, Words::SETTINGS))

    # Changes settings.
    # @raise [Refused] if the queue does not exist
    # @return [void]
    def alter(**settings) = ask("DQ.ALTER", *Words.of(settings, Words::SETTINGS))

    private

    def ask(command, *words) = @client.call(command, @name, *words)

    def repeated(timeout, command, *words, seconds: nil)
      reply, = @client.repeat(command, @name, *words, timeout: timeout + LATE_SECONDS, seconds: seconds)
      reply
    end

    def send_push(payload, options, timeout)
      made = options[:id].nil? && repeats?
      options = { **options, id: SecureRandom.uuid } if made
      words = Words.of(decorated(options), Words::PUSH)
      answer, may_be_there = @client.repeat("DQ.PUSH", @name, payload, *words, timeout: timeout)
      pushed(answer, made || may_be_there ? options[:id].to_s : nil)
    end

    def repeats? = @client.push_timeout.positive?

    # A null that answers a repeated push, or an id that nobody else has, means that the message is there.
    def pushed(answer, id) = answer.is_a?(RedisClient::Error) ? Link.refused(answer) : answer || id

    def decorated(options)
      headers = (options[:headers] || {}).dup
      @client.middleware.each { |middleware| middleware.push(@name, headers) }
      { **options, headers: headers }
    end

    def concerned(flow, group) = group ? ["GROUP", group.to_s] : [flow.to_s]

    def result(id, fields)
      if fields["state"] == "dead"
        raise Failed.new(fields["error"] || "the message #{id} is dead: #{fields["reason"]}", reason: fields["reason"])
      end
      # Workers say with an empty result that there was one, which they could not send.
      if fields["result"] == ""
        raise NotKept, "the result of #{id} was not kept: it is larger than 65536 bytes, or cannot be made JSON"
      end

      fields["result"]
    end
  end
end
