# frozen_string_literal: true

module DQ
  class Worker
    # How a delivery ended: its kind for hooks, the command, what follows the receipt in it, a text, and for the log an
    # error with its causes and backtraces.
    Outcome = Struct.new(:kind, :command, :words, :text, :details)

    # Outcomes of handlers as the server receives them: an ack, a completion, or a nack.
    class Outcome
      # The longest result that the server keeps, in bytes.
      RESULT_BYTES = 65_536
      # The server keeps so many bytes of an error.
      ERROR_BYTES = 1024
      SUMMARY_BYTES = 512
      # What the backtrace of an error does not show.
      OWN_FILES = File.expand_path("..", __dir__)

      ACK = new(:done, "DQ.ACK", [].freeze, "").freeze
      GIVEN_BACK = new(:returned, "DQ.NACK", ["NOCOUNT"].freeze, "").freeze

      class << self
        # @param result [Object] what a handler returned: a String is kept as it is, other values as JSON. For what
        #   cannot be kept, an empty result is, which no handler has: whoever awaits it sees that.
        # @return [Outcome]
        def of_result(result)
          return ACK if result.nil?

          stored = stored(result)
          return ACK if stored.empty?
          return new(:done, "DQ.COMPLETE", ["RESULT", stored], "") if stored.bytesize <= RESULT_BYTES

          unkept("has #{stored.bytesize} bytes and is not kept: the most are #{RESULT_BYTES}")
        rescue StandardError, SystemStackError => error # It is code of a user that makes JSON of a value.
          unkept("is not JSON and is not kept: #{error.class}")
        end

        # @param error [Exception] what a handler raised
        # @return [Outcome]
        def of_error(error)
          case error
          when Reject
            text = Texts.message(error)
            new(:rejected, "DQ.NACK", ["DEAD", "ERROR", Texts.cut(text, ERROR_BYTES)], text)
          when Retry then of_retry(error)
          else
            new(:failed, "DQ.NACK", ["ERROR", with_backtrace(error)], Texts.summary(error), Texts.details(error))
          end
        end

        private

        def stored(result)
          case result
          when String then result
          when Symbol then result.to_s
          when Hash, Array, Numeric, true, false then JSON.generate(result)
          else raise TypeError
          end
        end

        def unkept(reason) = new(:done, "DQ.COMPLETE", ["RESULT", ""], "its result #{reason}")

        def of_retry(given)
          text = Texts.message(given)
          words = given.after.nil? ? [] : ["DELAY", delay(given.after)]
          new(:retried, "DQ.NACK", [*words, "ERROR", Texts.cut(text, ERROR_BYTES)], text)
        rescue ArgumentError => error
          of_error(error)
        end

        def delay(after)
          milliseconds = Words.milliseconds(:after, after)
          return milliseconds if milliseconds.between?(0, Words::LONGEST_MS)

          raise ArgumentError, "the option :after is 0 to #{Words::LONGEST_MS / 1000} seconds, not #{after.inspect}"
        end

        # The class and text of an error and of its causes, and the beginning of its backtrace.
        def with_backtrace(error)
          head = Texts.cut(Texts.chain(error).map { |one| Texts.summary(one) }.join("\ncaused by "), SUMMARY_BYTES)
          lines = (error.backtrace || []).reject { |line| line.start_with?(OWN_FILES) }
          Texts.cut([head, *lines.map { |line| Texts.utf8(line) }].join("\n"), ERROR_BYTES)
        end
      end
    end
  end
end
