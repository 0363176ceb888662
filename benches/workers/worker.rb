# frozen_string_literal: true

# Measures one system of Ruby with an empty handler: jobs a second, and how late delayed ones are. Prints JSON.
#
#   ruby worker.rb dq|sidekiq|bridge URL [MESSAGES [DELAYED]]
#
# bridge is Sidekiq on dq. One process works on 64 jobs at a time. All jobs are in the queue before the worker starts.
# For the lateness, jobs fall due at a steady rate while the worker waits. The server is emptied.
$LOAD_PATH.unshift(File.expand_path("../../clients/ruby/lib", __dir__))
require "json"
require "dq"

CONCURRENCY = 64
RATE = 200 # delayed jobs a second
BULK = 1000

# Counts the jobs that have begun, and how late they did.
module Counted
  @lock = Mutex.new
  @all = Thread::Queue.new

  def self.begin(count)
    @left = count
    @late = []
    @begun = DQ.now
  end

  def self.handled(due = nil)
    late = Time.now.to_f - due if due
    @lock.synchronize do
      @late << (late * 1000) if late
      @all << (DQ.now - @begun) if (@left -= 1).zero?
    end
  end

  # Waits for the last one.
  # @return [Array(Float, Array<Float>)] how many seconds all took, and by how many ms each was late, ascending
  def self.wait = [@all.pop, @late.sort]
end

# When delayed jobs are due: the first one in two seconds and the time that the pushes take.
def due_times(count)
  start = Time.now.to_f.round(3) + 2 + (count / 1000.0)
  Array.new(count) { |number| (start + (number.to_f / RATE)).round(3) }
end

# dq's own worker.
class Own
  attr_reader :title

  def initialize(url)
    @title = "dq #{DQ::VERSION}"
    client = DQ::Client.new(url)
    @queue = client.queue("bench")
    @worker = DQ::Worker.new(client: client, logger: Logger.new(File::NULL))
    @worker.consume("bench", concurrency: CONCURRENCY) do |message|
      Counted.handled(message.payload.empty? ? nil : Float(message.payload))
    end
  end

  def push(count) = @queue.push_many([""] * count)
  def push_at(due) = @queue.push(due.to_s, at: Time.at(due))
  def start = @worker.start
end

# Sidekiq in this process, as it is or on dq.
class OfSidekiq
  attr_reader :title

  # A job that does nothing.
  class Job
    def self.define
      require "sidekiq"
      include ::Sidekiq::Job
    end

    def perform(due = nil) = Counted.handled(due)
  end

  def initialize(url, on_dq)
    Job.define
    require "sidekiq/embedded"
    ::Sidekiq.configure_client { |config| config.redis = { url: url } }
    if on_dq
      require "dq/sidekiq"
      DQ::Sidekiq.install(url: url)
    end
    @title = "Sidekiq #{::Sidekiq::VERSION}#{" on dq" if on_dq}"
    @instance = ::Sidekiq.configure_embed do |config|
      config.redis = { url: url }
      config.logger.level = Logger::ERROR
      config.concurrency = CONCURRENCY
    end
  end

  def push(count) = Job.perform_bulk([[]] * count)
  def push_at(due) = Job.perform_at(due, due)
  def start = @instance.run
end

kind, url, messages, delayed = ARGV
messages = Integer(messages || 20_000)
DQ::Client.new(url).call("FLUSHALL")
system = kind == "dq" ? Own.new(url) : OfSidekiq.new(url, kind == "bridge")
(messages / BULK).times { system.push(BULK) }
Counted.begin(messages)
system.start
seconds, = Counted.wait
due = due_times(Integer(delayed || 1000))
Counted.begin(due.size)
due.each { |at| system.push_at(at) }
_, late = Counted.wait
puts JSON.generate(worker: system.title, rate: messages / seconds,
                   p50: late[late.size / 2], p99: late[late.size * 99 / 100])
$stdout.flush
exit!(0) # What the worker still holds does not matter.
