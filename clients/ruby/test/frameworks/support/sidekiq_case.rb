# frozen_string_literal: true

require_relative "home"

# Processes of Sidekiq.
module SidekiqProcesses
  # @param queues [Array<String>] the queues, in their order
  # @param environment [Hash] such as DQ_TEST_LEASE, in seconds
  # @return [TestProgram] a process with two threads, which gives jobs so many seconds when it stops
  def self.start(*queues, timeout: 10, threads: 2, **environment)
    program = "#{FRAMEWORKS}/support/sidekiq_program.rb"
    application = "#{FRAMEWORKS}/apps/sidekiq_jobs.rb"
    words = ["-r", application, "-c", threads, "-t", timeout, *queues.flat_map { |queue| ["-q", queue] }]
    TestProgram.new(program, *words.map(&:to_s), **environment)
  end
end

# What a test needs that enqueues jobs for a process of Sidekiq.
class SidekiqCase < Minitest::Test
  # What the job of this test recorded, once it has recorded so much.
  def recorded(count, what = name)
    Patience.until(-> { "#{count} records of #{what}: #{Record.of(what)}; #{worker_log}" }) do
      Record.of(what).size >= count
    end
    Record.of(what)
  end

  def milliseconds
    (Time.now.to_f * 1000).floor
  end

  # What a set of Sidekiq has of this test.
  def jobs_of(set)
    set.select { |job| job.args.first == name }
  end
end
