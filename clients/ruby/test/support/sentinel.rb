# frozen_string_literal: true

require "socket"

# Stands for a Sentinel whose answers and announcements a test orders. It speaks RESP2.
class TestSentinel
  attr_reader :port
  # @return [Integer] the port of the master that it names to whoever asks
  attr_accessor :master

  def initialize(master)
    @master = master
    @listener = TCPServer.new("127.0.0.1", 0)
    @port = @listener.addr[1]
    @subscribers = []
    @lock = Mutex.new
    @thread = Thread.new { loop { serve_in_thread(@listener.accept) } }
    @thread.report_on_exception = false
  end

  # @return [Hash] the options of a client that asks it
  def options = { name: "jobs", sentinels: [{ host: "127.0.0.1", port: port }], protocol: 2 }

  # @return [Integer] how many connections listen to what it announces
  def subscribers = @lock.synchronize { @subscribers.size }

  def announce(from, to)
    text = "jobs 127.0.0.1 #{from} 127.0.0.1 #{to}"
    @lock.synchronize { @subscribers.each { |socket| socket.write(array("message", "+switch-master", text)) } }
  end

  # Ends the connections that listen.
  def drop
    @lock.synchronize do
      @subscribers.each { |socket| hang_up(socket) }
      @subscribers.clear
    end
  end

  def close
    @thread.kill
    @listener.close
    drop
  end

  private

  def hang_up(socket)
    socket.shutdown
  rescue SystemCallError, IOError
    nil # The client was first.
  end

  def serve_in_thread(socket)
    Thread.new do
      serve(socket)
    rescue SystemCallError, IOError
      socket.close
    end
  end

  def serve(socket)
    while (words = read(socket))
      case words.map(&:downcase)
      in ["sentinel", "get-master-addr-by-name", _] then socket.write(array("127.0.0.1", master.to_s))
      in ["sentinel", *] then socket.write("*0\r\n")
      in ["subscribe", _] then subscribe(socket)
      else socket.write("+OK\r\n")
      end
    end
  end

  def subscribe(socket)
    @lock.synchronize do
      socket.write("*3\r\n#{bulk("subscribe")}#{bulk("+switch-master")}:1\r\n")
      @subscribers << socket
    end
  end

  # @return [Array<String>, nil] the words of a command; nil at the end
  def read(socket)
    count = socket.gets or return
    Array.new(Integer(count[1..])) do
      size = Integer(socket.gets[1..])
      socket.read(size + 2)[0, size]
    end
  end

  def array(*texts) = "*#{texts.size}\r\n#{texts.map { |text| bulk(text) }.join}"

  def bulk(text) = "$#{text.bytesize}\r\n#{text}\r\n"
end
