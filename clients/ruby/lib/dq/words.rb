# frozen_string_literal: true

module DQ
  # Options as the words of commands. All times are in seconds; the server wants milliseconds.
  module Words
    # The longest time that the server accepts, in milliseconds.
    LONGEST_MS = 4_398_046_511_103
    # To the server, a smaller number would be seconds. This is in March 1973, so such a time has passed anyway.
    EARLIEST_MS = 100_000_000_000

    MESSAGE = %i[priority retries lease group headers].freeze
    PUSH = [*MESSAGE, :id, :delay, :at, :ttl, :replace, :max_wait, :later, :retain, :batch, :attempt, :error,
            :checkpoint, :dead, :reason].freeze
    FOLLOW = [*MESSAGE, :id, :delay].freeze
    SCHEDULE = [*MESSAGE, :at, :ttl, :every, :offset, :cron, :tz, :until, :times].freeze
    SETTINGS = %i[lease max_lease delay retries backoff jitter ttl max_len max_inflight rate dead_len dead_ttl retain
                  done_len max_payload group_inflight group_rate errors group_order dedupe forward dead_forward].freeze

    # The kind of value of each option. The words are sent in this order, since some belong to the one before.
    KINDS = {
      id: :text, delay: :duration, every: :duration, offset: :duration, cron: :text, tz: :text, at: :time,
      until: :time, for: :duration, older: :duration, reason: :text, times: :number, count: :number,
      priority: :number, retries: :number, lease: :duration, ttl: :duration, replace: :flag, max_wait: :duration,
      later: :flag, retain: :duration, group: :text, batch: :text, recurring: :flag, headers: :pairs,
      attempt: :number, error: :text, checkpoint: :text, dead: :flag, max_lease: :duration, backoff: :waits,
      jitter: :number, max_len: :number, max_inflight: :number, rate: :rate, dead_len: :number, dead_ttl: :duration,
      done_len: :number, max_payload: :number, group_inflight: :number, group_rate: :rate, errors: :number,
      group_order: :text, dedupe: :duration, forward: :phrase, dead_forward: :phrase
    }.freeze

    # What a value of each kind is, for errors.
    DESCRIPTIONS = {
      text: "a String", number: "an Integer", duration: "a number of seconds", flag: "true or false",
      time: "a Time, or Unix seconds", pairs: "a Hash of names to values", waits: "an Array of two numbers of seconds",
      rate: "an Array of an Integer and a number of seconds", phrase: "a String of words"
    }.freeze

    module_function

    # Returns the words of those options that are not nil.
    # @param options [Hash{Symbol => Object}]
    # @param known [Array<Symbol>] the options of the command
    # @return [Array<String, Integer>]
    # @raise [ArgumentError] if an option is not known or has a value of another kind
    def of(options, known = KINDS.keys)
      unknown = options.keys - known
      unless unknown.empty?
        raise ArgumentError, "there is no option #{unknown.first.inspect}; the options are #{known.sort.join(", ")}"
      end

      KINDS.flat_map do |name, kind|
        value = options[name]
        next [] if value.nil? || value == {} || (kind == :flag && value == false)

        [name.to_s.delete("_").upcase, *value_of(name, kind, value)]
      end
    end

    # @param name [Symbol, String] the option, for the error
    # @param seconds [Numeric] or a Duration of Rails
    # @return [Integer] milliseconds, rounded to a microsecond and then up, so that nothing is due too early
    def milliseconds(name, seconds)
      wrong(name, :duration, seconds) unless seconds.is_a?(Numeric) && seconds.real? && seconds.to_f.finite?
      ((seconds.to_r * 1_000_000).round / 1000r).ceil
    end

    # @param name [Symbol] the option, for the error
    # @param time [Time, #to_time, Numeric] a time, or Unix seconds
    # @return [Integer] Unix milliseconds, rounded up
    def unix_milliseconds(name, time)
      # In Rails, Strings have to_time, and a Duration, which has from_now, says that it is a number.
      wrong(name, :time, time) if time.is_a?(String) || time.respond_to?(:from_now)
      return [milliseconds(name, time), EARLIEST_MS].max if time.is_a?(Numeric)

      wrong(name, :time, time) unless time.respond_to?(:to_time)
      time = time.to_time unless time.is_a?(Time) # A TimeWithZone is one; its to_time warns in Rails 7.2.
      [(time.to_r * 1000).ceil, EARLIEST_MS].max
    end

    # @return [Array<String, Integer>] the words that follow the name of an option
    def value_of(name, kind, value)
      case kind
      when :number then [number(name, kind, value)]
      when :duration then [milliseconds(name, value)]
      when :time then [unix_milliseconds(name, value)]
      when :flag then value == true ? [] : wrong(name, kind, value)
      when :text then [text(name, kind, value)]
      when :phrase then text(name, kind, value).split
      else several_of(name, kind, value)
      end
    end

    def several_of(name, kind, value)
      case kind
      when :pairs then pairs(name, value)
      when :waits then pair(name, kind, value).map { |wait| milliseconds(name, wait) }
      when :rate
        deliveries, period = pair(name, kind, value)
        [number(name, kind, deliveries), milliseconds(name, period)]
      end
    end

    def text(name, kind, value)
      value.is_a?(String) || value.is_a?(Symbol) ? value.to_s : wrong(name, kind, value)
    end

    # A Duration of Rails says that it is an Integer, but is none.
    def number(name, kind, value)
      case value
      when Integer then value
      else wrong(name, kind, value)
      end
    end

    def pair(name, kind, value)
      value.is_a?(Array) && value.size == 2 ? value : wrong(name, kind, value)
    end

    def pairs(name, value)
      wrong(name, :pairs, value) unless value.is_a?(Hash)
      [value.size, *value.flat_map { |header, content| [text(name, :pairs, header), text(name, :pairs, content)] }]
    end

    def wrong(name, kind, value)
      raise ArgumentError, "the option #{name.inspect} is #{DESCRIPTIONS.fetch(kind)}, not #{value.inspect}"
    end
  end
end
