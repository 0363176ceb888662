# frozen_string_literal: true

module DQ
  # Texts for people and for the server's errors.
  module Texts
    # How many causes of an error are named.
    MOST_CAUSES = 5
    # The length of a name of a consumer that the server takes, in bytes.
    CONSUMER_BYTES = 128

    module_function

    # @param text [String] of any encoding
    # @return [String] it in UTF-8, with a mark for what is none
    def utf8(text)
      text = text.dup.force_encoding(Encoding::UTF_8) if text.encoding == Encoding::BINARY
      text.encode(Encoding::UTF_8, invalid: :replace, undef: :replace).scrub
    end

    # @return [String] the first bytes of a text, up to the end of a character
    def cut(text, most) = text.bytesize <= most ? text : text.byteslice(0, most).scrub("")

    # @return [String] by which name DQ.CONSUMERS lists this process: host:pid:name, shortened at the host to what the
    #   server takes
    def consumer(name)
      rest = ":#{Process.pid}:#{name}"
      host = Socket.gethostname.byteslice(0, [CONSUMER_BYTES - rest.bytesize, 0].max)
      "#{host}#{rest}".byteslice(0, CONSUMER_BYTES)
    end

    # @param error [Exception]
    # @return [String] its class and message
    def summary(error) = "#{error.class}: #{message(error)}"

    # @return [String] the message of an error, which is code of a user
    def message(error)
      utf8(error.message.to_s)
    rescue StandardError
      "(the text of this error cannot be read)"
    end

    # @return [Array<Exception>] an error and what caused it
    def chain(error)
      found = [error]
      found << found.last.cause while found.last.cause && found.size <= MOST_CAUSES
      found
    end

    # @return [String] an error and its causes with their backtraces
    def details(error)
      chain(error).each_with_index.flat_map do |one, index|
        ["#{"caused by " if index.positive?}#{summary(one)}", *(one.backtrace || []).map { |line| "  #{utf8(line)}" }]
      end.join("\n")
    end
  end
end
