# Fills a queue of Sidekiq, lets a worker fail so that jobs are dead or wait for a retry, and prints as JSON what was
# put there.
#
#   ruby sidekiq_queue.rb PORT        with Sidekiq, such as Debian's ruby-sidekiq

require "json"
require "sidekiq"
require "sidekiq/api"

PORT = (ENV["DQ_TEST_PORT"] || ARGV[0]).to_i
REDIS = { url: "redis://127.0.0.1:#{PORT}/0" }
LATER = 4_102_444_800

class MailWorker
  include Sidekiq::Worker
  sidekiq_options queue: "mail", retry: 5
  def perform(_)
    raise "no such user"
  end
end

if defined?(Sidekiq::CLI)
  Sidekiq.configure_server { |config| config.redis = REDIS }
else
  Sidekiq.configure_client { |config| config.redis = REDIS }
  jobs = []
  failing = (0...2).map { |number| MailWorker.perform_async(number) }
  dead = MailWorker.set(retry: 0).perform_async(2)
  past = { attempt: 1, error: "RuntimeError: no such user" }
  environment = { "DQ_TEST_PORT" => PORT.to_s, "REDIS_URL" => REDIS[:url] }
  command = ["sidekiq", "-r", File.expand_path(__FILE__), "-c", "1", "-t", "1", "-q", "mail"]
  worker = spawn(environment, *command, out: File::NULL, err: File::NULL)
  begin
    deadline = Time.now + 60
    sleep 0.05 until Sidekiq::RetrySet.new.size + Sidekiq::DeadSet.new.size == 3 || Time.now > deadline
  ensure
    Process.kill("KILL", worker)
    Process.wait(worker)
  end
  # What the worker tells of its machine.
  Sidekiq.redis { |connection| connection.del("processes", *connection.smembers("processes")) }
  Sidekiq::RetrySet.new.each { |job| jobs << { id: "sidekiq:#{job.jid}", due: (job.score * 1000 - 0.01).ceil, **past } }
  failed = failing.map { |jid| "sidekiq:#{jid}" }
  raise "the worker fails nothing" unless jobs.map { |job| job[:id] }.sort == failed.sort
  jobs << { id: "sidekiq:#{dead}", due: nil, dead: "retries", **past }
  5.times { |number| jobs << { id: "sidekiq:#{MailWorker.perform_async(number)}", due: nil } }
  5.times do |number|
    at = LATER + number / 2 + 0.5
    jobs << { id: "sidekiq:#{MailWorker.perform_at(at, number)}", due: (at * 1000).to_i }
  end
  MailWorker.set(queue: "other").perform_async(0)
  MailWorker.set(queue: "other").perform_at(LATER, 0)
  puts JSON.generate({ library: "sidekiq #{Sidekiq::VERSION}", source: "mail", left: 2, jobs: jobs })
end
