# frozen_string_literal: true

$LOAD_PATH.unshift(File.expand_path("../lib", __dir__))
require "minitest/autorun"
require "stringio"
require "dq"
require_relative "support/patience"
require_relative "support/program"
require_relative "support/server"

# A test with a server of its own.
class ServerTest < Minitest::Test
  attr_reader :server, :client

  def setup
    @server = TestServer.new.boot
    @client = DQ::Client.new(server.url)
    @log = StringIO.new
    @events = Thread::Queue.new
    @closing = []
  end

  def teardown
    @closing.reverse_each(&:call)
    client.close
    server.close
  end

  def queue(name = "q") = client.queue(name)

  # Has a worker in this process while a block runs.
  def work(concurrency: 2, middleware: [], **options, &handler)
    at = DQ::Client.new(options.delete(:redis) || server.url)
    at.middleware.concat(middleware)
    worker = DQ::Worker.new(client: at, grace: 0.2, logger: Logger.new(@log), hook: @events.method(:push), **options)
    worker.consume("q", concurrency: concurrency, &handler)
    worker.start
    @closing << lambda do
      worker.stop
      at.close
    end
    worker
  end

  # @return [DQ::Worker::Event] the next one of this kind
  def event(kind)
    Patience.until(-> { "#{kind}; the log: #{@log.string}" }) do
      found = @events.pop(true) unless @events.empty?
      found if found&.kind == kind
    end
  end

  # Waits until a queue has counted so many.
  def counted(name, count, queue = "q")
    Patience.until(-> { "#{name} #{count}: #{server.info(queue)} #{@log.string}" }) do
      server.info(queue)[name] == count
    end
  end

  # Starts a program that is killed at the end.
  def program(*words, **options)
    TestProgram.new(*words, **options).tap { |program| @closing << program.method(:kill) }
  end

  # Writes a file that is removed at the end.
  # @return [String] its path
  def file(name, text)
    directory = Dir.mktmpdir("dq-file-")
    @closing << -> { FileUtils.remove_entry(directory) }
    File.join(directory, name).tap { |path| File.write(path, text) }
  end
end
