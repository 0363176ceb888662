# frozen_string_literal: true

require "fileutils"
require "redis-client"
require "socket"
require "tmpdir"

# A server with the module, on a port and in a directory of its own.
class TestServer
  ROOT = File.expand_path("../../../..", __dir__)
  # Lines that a healthy server never writes.
  ALARMS = ["panicked", "BUG REPORT", "a bug in the module"].freeze

  attr_reader :port, :directory

  def self.free_port = TCPServer.open("127.0.0.1", 0) { |listener| listener.addr[1] }

  def self.printed(variable, command) = ENV.fetch(variable) { `#{ROOT}/scripts/#{command}`.strip }

  # @param arguments [Array<String>] of the server
  def initialize(*arguments, with_module: true)
    @port = TestServer.free_port
    @directory = Dir.mktmpdir("dq-ruby-")
    loaded = with_module ? ["--loadmodule", TestServer.printed("DQ_MODULE", "find-module.sh debug")] : []
    @arguments = [*loaded, *arguments]
  end

  def url = "redis://127.0.0.1:#{port}"

  # Starts it, or starts it again with the same port and data, and waits until it answers.
  def boot
    @pid = Process.spawn(
      TestServer.printed("DQ_SERVER", "find-server.sh"), "--port", port.to_s, "--bind", "127.0.0.1",
      "--dir", directory, "--save", "", "--logfile", log, "--appendonly", "yes", "--appendfsync", "no", *@arguments,
      out: File::NULL
    )
    Patience.until("the server answers") { answers? }
    self
  end

  def signal(name) = Process.kill(name, @pid)

  def kill
    signal(:KILL)
    Process.wait(@pid)
    @pid = nil
  end

  # Ends it, and fails if its log has an alarm.
  def close
    @admin&.close
    kill if @pid
    lines = File.exist?(log) ? File.readlines(log) : []
    FileUtils.remove_entry(directory)
    alarms = lines.select { |line| ALARMS.any? { |alarm| line.include?(alarm) } }
    raise alarms.join unless alarms.empty?
  end

  # Sends a command and returns the reply, maps as hashes.
  def do(*words) = admin.call(*words.map(&:to_s))

  def message(queue, id) = self.do("DQ.GET", queue, id) || {}

  def info(queue) = self.do("DQ.INFO", queue) || {}

  # @return [Integer] how many messages a queue has in a state, or in all in which they are still to be done
  def len(queue, *state) = self.do("DQ.LEN", queue, *state)

  private

  def log = "#{directory}/log"

  def admin = @admin ||= RedisClient.config(url: url, timeout: 30, reconnect_attempts: 1).new_client

  def answers?
    self.do("PING") == "PONG"
  rescue RedisClient::Error
    false
  end
end
