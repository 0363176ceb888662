# frozen_string_literal: true

# The application that tests of Sidekiq run, on Sidekiq itself and on the bridge (DQ_TEST_BRIDGE). The classes are those
# of any user of Sidekiq: nothing in them knows of dq.
require "sidekiq"
require "active_job"
require_relative "../support/record"

# Counts what goes through the middleware of producers, and stops what is to be stopped.
class ClientNote
  def call(_class, job, _queue, _pool)
    job["noted"] = true
    yield unless job["args"].include?("stop in middleware")
  end
end

# Adds what the middleware of producers has written.
class ServerNote
  def call(_instance, job, queue)
    Record.add("#{job["args"].first} middleware", [job["noted"], queue, job["retry_count"]])
    yield
  end
end

redis = { url: ENV.fetch("DQ_TEST_SIDEKIQ_URL") }
Sidekiq.configure_client do |config|
  config.redis = redis
  config.client_middleware { |chain| chain.add ClientNote }
end
Sidekiq.configure_server do |config|
  config.redis = redis
  config.client_middleware { |chain| chain.add ClientNote }
  config.server_middleware { |chain| chain.add ServerNote }
  config.death_handlers << ->(job, error) { Record.add("#{job["args"].first} death", error.message) }
  # So often retries are looked at, in seconds; Sidekiq itself needs it for scheduled jobs too.
  config.respond_to?(:options) ? config.options[:poll_interval_average] = 0.2 : config[:poll_interval_average] = 0.2
end

if ENV["DQ_TEST_BRIDGE"] == "1"
  require "dq/sidekiq"
  DQ::Sidekiq.install(url: ENV.fetch("DQ_TEST_URL"), lease: ENV.fetch("DQ_TEST_LEASE", "30").to_f)
end

class NoteWorker
  include Sidekiq::Worker

  def perform(name, what = "ran")
    Record.add(name, what)
  end
end

# Records the id that it has.
class IdWorker
  include Sidekiq::Worker

  def perform(name)
    Record.add(name, jid)
  end
end

class MailWorker < NoteWorker
  sidekiq_options queue: "mail"
end

# Fails the first time.
class RetriedWorker
  include Sidekiq::Worker
  sidekiq_options retry: 3
  sidekiq_retry_in { 1 }

  def perform(name)
    tries = Record.of(name).size
    Record.add(name, "try #{tries}")
    raise "not yet" if tries.zero?
  end
end

class OnceWorker
  include Sidekiq::Worker
  sidekiq_options retry: false

  def perform(name)
    Record.add(name, "try")
    raise "no paper"
  end
end

class ExhaustedWorker
  include Sidekiq::Worker
  sidekiq_options retry: 0
  sidekiq_retries_exhausted { |job, error| Record.add("#{job["args"].first} exhausted", error.message) }

  def perform(name)
    Record.add(name, "try")
    raise "no paper" if Record.of(name).size == 1
  end
end

# Takes its time, unless a file lets it go on.
class SlowWorker
  include Sidekiq::Worker

  def perform(name, seconds = 60)
    Record.add(name, "begin")
    last = Time.now + seconds
    sleep 0.02 until Time.now > last || File.exist?("#{Record.path}.calm")
    Record.add(name, "end")
  end
end

class DeadlyWorker
  include Sidekiq::Worker

  def perform(name)
    Record.add(name, "begin")
    Process.kill(:KILL, Process.pid)
  end
end

# Waits for a file, and fails.
class FailingWorker
  include Sidekiq::Worker
  sidekiq_retry_in { 1 }

  def perform(name)
    Record.add(name, "begin")
    sleep 0.02 until File.exist?("#{Record.path}.calm")
    raise "no paper" if Record.of(name).size == 1

    Record.add(name, "end")
  end
end

if defined?(Sidekiq::IterableJob)
  # A long list, of which each element is one step.
  class ListWorker
    include Sidekiq::IterableJob

    def build_enumerator(_name, cursor:)
      array_enumerator([*1..5], cursor: cursor)
    end

    def each_iteration(number, name)
      Record.add(name, number)
      sleep 0.02 until number != 2 || File.exist?("#{Record.path}.calm")
    end
  end
end

ActiveJob::Base.queue_adapter = :sidekiq
ActiveJob::Base.logger = Logger.new(nil)

class SidekiqNoteJob < ActiveJob::Base
  queue_as :mail

  def perform(name, what = "ran")
    Record.add(name, what)
  end
end
