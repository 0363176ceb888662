# frozen_string_literal: true

module DQ
  class Worker
    # What a worker and its guard write to each other, as it arrives.
    class Frames
      LENGTH_BYTES = 4
      READ_BYTES = 65_536

      # @param value [Object]
      # @return [String] its bytes, behind their number
      def self.dump(value)
        bytes = Marshal.dump(value)
        [bytes.bytesize].pack("N") << bytes
      end

      # @param socket [UNIXSocket]
      def initialize(socket)
        @socket = socket
        @buffer = String.new(encoding: Encoding::BINARY)
      end

      # @return [Array<Object>] what has arrived; it does not wait
      # @raise [EOFError] if the other process has ended
      def read
        loop do
          bytes = @socket.read_nonblock(READ_BYTES, exception: false)
          raise EOFError if bytes.nil?
          return values if bytes == :wait_readable

          @buffer << bytes
        end
      end

      private

      def values
        found = []
        while (length = @buffer.unpack1("N")) && @buffer.bytesize >= LENGTH_BYTES + length
          found << Marshal.load(@buffer.byteslice(LENGTH_BYTES, length)) # rubocop:disable Security/MarshalLoad -- ours
          @buffer = @buffer.byteslice((LENGTH_BYTES + length)..)
        end
        found
      end
    end
  end
end
