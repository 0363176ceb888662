# An unchanged Sidekiq worker runs jobs that dq forwards to its queue.
#
#   ruby sidekiq_worker.rb PORT        with Sidekiq, such as Debian's ruby-sidekiq

require "json"
require "redis"
require "securerandom"

port = (ENV["DQ_TEST_PORT"] || ARGV[0]).to_i
REDIS_URL = "redis://127.0.0.1:#{port}/0"

if defined?(Sidekiq::CLI)
  # Sidekiq has loaded this file as the application of its worker.
  Sidekiq.configure_server { |config| config.redis = { url: REDIS_URL } }
  class HardWorker
    include Sidekiq::Worker
    def perform(one, other)
      Sidekiq.redis { |connection| connection.rpush("results", one + other) }
    end
  end
else
  connection = Redis.new(url: REDIS_URL)
  target = ["FORWARD", "LIST", "queue:default", "LEFT", "REGISTER", "queues", "default"]
  connection.call("DQ.CREATE", "sidekiq:later", *target)
  later = lambda do |ms, *args|
    jid = SecureRandom.hex(12)
    now = Time.now.to_f
    job = { class: "HardWorker", args: args, jid: jid, queue: "default", retry: true }
    job.update(created_at: now, enqueued_at: now)
    connection.call("DQ.PUSH", "sidekiq:later", JSON.generate(job), "ID", jid, "DELAY", ms)
    jid
  end
  later.call(200, 1, 2)
  cancelled = later.call(300, 100, 100)
  later.call(400, 3, 4)
  raise "not cancelled" unless connection.call("DQ.CANCEL", "sidekiq:later", cancelled) == ["delayed"]
  command = ["sidekiq", "-r", File.expand_path(__FILE__), "-c", "1", "-t", "1"]
  worker = spawn({ "DQ_TEST_PORT" => port.to_s, "REDIS_URL" => REDIS_URL }, *command, out: File::NULL, err: File::NULL)
  begin
    deadline = Time.now + 60
    sleep 0.05 until connection.llen("results") == 2 || Time.now > deadline
    results = connection.lrange("results", 0, -1)
    raise "the results are #{results}" unless results == %w[3 7]
    raise "the queue is not registered" unless connection.smembers("queues") == ["default"]
  ensure
    Process.kill("TERM", worker)
    Process.wait(worker)
  end
  puts "ok"
end
