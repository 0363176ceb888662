# frozen_string_literal: true

# What users of Sidekiq rely on: the same tests on Sidekiq itself (DQ_TEST_BRIDGE=0) and on the bridge.
require_relative "support/sidekiq_case"

class SidekiqTest < SidekiqCase
  ENV["DQ_TEST_BRIDGE"] ||= "1"
  SERVER = TestServer.new.boot
  ENV["DQ_TEST_URL"] = ENV["DQ_TEST_SIDEKIQ_URL"] = SERVER.url
  WORKER = SidekiqProcesses.start("default", "mail")
  Minitest.after_run do
    WORKER.kill
    SERVER.close
  end
  require_relative "apps/sidekiq_jobs"
  require "sidekiq/api"

  def test_a_job_runs
    jid = IdWorker.perform_async(name)
    assert_equal [jid], recorded(1)
  end

  def test_a_job_of_another_queue_runs
    MailWorker.perform_async(name)
    NoteWorker.set(queue: "mail").perform_async(name)
    recorded(2)
  end

  def test_a_scheduled_job_is_never_early
    due = milliseconds + 300
    NoteWorker.perform_in(0.3, name)
    NoteWorker.perform_at(Time.now.to_f + 0.3, name)
    recorded(2)
    assert_operator Record.times(name).min, :>=, due
  end

  def test_many_jobs_are_pushed_together
    ids = NoteWorker.perform_bulk(Array.new(1500) { |number| [name, number] })
    assert_equal 1500, ids.uniq.size
    assert_equal [*0..1499], recorded(1500).sort
  end

  def test_many_jobs_are_scheduled_together
    at = [Time.now.to_f + 0.1, Time.now.to_f + 0.2]
    Sidekiq::Client.push_bulk("class" => NoteWorker, "args" => [[name, 1], [name, 2]], "at" => at)
    assert_equal [1, 2], recorded(2).sort
  end

  def test_a_job_that_fails_is_retried
    RetriedWorker.perform_async(name)
    assert_equal ["try 0", "try 1"], recorded(2)
    assert_equal [nil, 0], recorded(2, "#{name} middleware").map(&:last)
    Patience.until("no retry is left") { jobs_of(Sidekiq::RetrySet.new).empty? }
  end

  def test_a_job_without_retries_runs_once
    OnceWorker.perform_async(name)
    assert_equal ["no paper"], recorded(1, "#{name} death")
    NoteWorker.perform_async("#{name} next")
    recorded(1, "#{name} next")
    assert_equal %w[try], Record.of(name)
    assert_empty jobs_of(Sidekiq::RetrySet.new)
  end

  def test_a_job_whose_retries_are_spent_is_in_the_dead_set
    jid = ExhaustedWorker.perform_async(name)
    assert_equal ["no paper"], recorded(1, "#{name} exhausted")
    assert_equal ["no paper"], recorded(1, "#{name} death")
    Patience.until("it is in the dead set") { jobs_of(Sidekiq::DeadSet.new).any? }
    assert_equal [jid], jobs_of(Sidekiq::DeadSet.new).map(&:jid)
    jobs_of(Sidekiq::DeadSet.new).each(&:retry)
    assert_equal %w[try try], recorded(2)
  end

  def test_what_is_no_job_is_in_the_dead_set
    if ENV["DQ_TEST_BRIDGE"] == "1"
      DQ::Sidekiq.queue("default").push("no JSON")
    else
      SERVER.do("LPUSH", "queue:default", "no JSON")
    end
    Patience.until("it is in the dead set") { SERVER.do("ZRANGE", "dead", 0, -1).include?("no JSON") }
  end

  def test_middleware_sees_what_is_pushed_and_what_runs
    NoteWorker.perform_async(name)
    recorded(1)
    assert_equal [[true, "default", nil]], Record.of("#{name} middleware")
  end

  def test_middleware_can_stop_a_push
    assert_nil NoteWorker.perform_async(name, "stop in middleware")
    NoteWorker.perform_async(name)
    assert_equal %w[ran], recorded(1)
  end

  def test_jobs_of_active_job_run
    SidekiqNoteJob.perform_later(name)
    due = milliseconds + 300
    SidekiqNoteJob.set(wait: 0.3).perform_later("#{name} later")
    recorded(1)
    recorded(1, "#{name} later")
    assert_operator Record.times("#{name} later").first, :>=, due
  end

  def test_many_jobs_of_active_job_are_enqueued_together
    skip "perform_all_later came with Rails 7.1" unless ActiveJob.respond_to?(:perform_all_later)

    jobs = [SidekiqNoteJob.new(name, 1), SidekiqNoteJob.new(name, 2).set(wait: 0.1)]
    ActiveJob.perform_all_later(jobs)
    assert_equal [1, 2], recorded(2).sort
  end

  def test_a_test_of_an_application_runs_no_job
    script = <<~RUBY
      require #{"#{FRAMEWORKS}/apps/sidekiq_jobs.rb".inspect}
      require "sidekiq/testing"
      Sidekiq::Testing.fake!
      NoteWorker.perform_async("fake")
      abort "not in the array" unless NoteWorker.jobs.size == 1
      Sidekiq::Testing.inline! { NoteWorker.perform_async(#{name.inspect}) }
    RUBY
    program = TestProgram.new("-e", script)
    assert_equal 0, program.wait.exitstatus, program.output
    assert_equal [program.pid], Record.processes(name)
  end

  private

  def worker_log
    WORKER.output
  end
end
