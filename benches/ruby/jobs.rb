# frozen_string_literal: true

# The job that compare.rb measures, on the system that BENCH_SYSTEM names.
$LOAD_PATH.unshift(File.expand_path("../../clients/ruby/lib", __dir__))

SYSTEM = ENV.fetch("BENCH_SYSTEM")
URL = ENV.fetch("BENCH_URL")

# Where jobs write when they began.
LOG = File.open(ENV.fetch("BENCH_LOG"), "a")
LOG.sync = true

def work(number, seconds)
  LOG.write("#{number} #{(Time.now.to_f * 1000).round}\n")
  sleep seconds if seconds.positive?
  LOG.write("#{number} done\n")
end

if %w[sidekiq bridge].include?(SYSTEM)
  require "sidekiq"
  Sidekiq.configure_server { |config| config.redis = { url: URL } }
  Sidekiq.configure_client { |config| config.redis = { url: URL } }
  Sidekiq.logger.level = Logger::ERROR if Sidekiq.respond_to?(:logger)
  if SYSTEM == "bridge"
    require "dq/sidekiq"
    DQ::Sidekiq.install(url: URL, lease: 5)
  end

  # A job of Sidekiq.
  class BenchJob
    include Sidekiq::Job

    def perform(number, seconds)
      work(number, seconds)
    end
  end

  def enqueue(number, seconds, at = nil)
    at ? BenchJob.perform_at(at, number, seconds) : BenchJob.perform_async(number, seconds)
  end
else
  require "active_job"
  ActiveJob::Base.logger = Logger.new(nil)
  if SYSTEM == "dq"
    require "dq/active_job"
    DQ.redis = { url: URL }
    DQ.logger = Logger.new(nil)
  end
  ActiveJob::Base.queue_adapter = SYSTEM.to_sym

  # The same for Active Job.
  class BenchJob < ActiveJob::Base
    def perform(number, seconds)
      work(number, seconds)
    end
  end

  def enqueue(number, seconds, at = nil)
    (at ? BenchJob.set(wait_until: Time.at(at)) : BenchJob).perform_later(number, seconds)
  end
end
