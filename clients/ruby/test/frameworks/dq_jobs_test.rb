# frozen_string_literal: true

# What Active Job has on dq and on nothing else: options of messages, cancelling, and what happens when things break.
ENV["DQ_TEST_ADAPTER"] = "dq"
require_relative "support/dq_case"

class DqJobsTest < DqCase
  def test_jobs_due_together_run_in_the_order_in_which_they_were_enqueued
    due = Time.at(Time.now.to_f + 0.5)
    30.times { |number| NoteJob.set(wait_until: due).perform_later(name, number) }
    work("default=1") { assert_equal [*0..29], recorded(30) }
  end

  def test_the_smallest_priority_is_first
    [10, 0, -5, 200, nil].each { |priority| NoteJob.set(priority: priority).perform_later(name, priority.inspect) }
    work("default=1") { assert_equal %w[-5 0 nil 10 200], recorded(5) }
  end

  def test_options_become_those_of_the_message
    job = OptionsJob.set(priority: nil, wait: 600).perform_later("ann")
    message = server.message("default", job.provider_job_id)
    assert_equal job.job_id, job.provider_job_id
    expected = { "retries" => 5, "lease" => 60_000, "ttl" => 3_600_000, "priority" => 3, "group" => "ann" }
    assert_equal expected, message.slice(*expected.keys)
    assert_equal(-4, server.message("default", OptionsJob.set(priority: 4).perform_later("ann").job_id)["priority"])
  end

  def test_an_unknown_option_is_refused
    error = assert_raises(ArgumentError) { Class.new(ApplicationJob) { dq_options delay: 5 } }
    assert_match(/unknown options of dq: delay; known: id, group/, error.message)
  end

  def test_a_unique_job_is_enqueued_once
    assert UniqueJob.set(wait: 600).perform_later("1")
    refute UniqueJob.perform_later("1")
    assert UniqueJob.set(wait: 600).perform_later("2")
    assert_equal 2, server.len("default")
  end

  def test_a_unique_job_stays_unique_between_its_retries
    UniqueJob.perform_later(name, failures: 1)
    work do
      recorded(1)
      Patience.until("it waits for its retry") { server.len("default", "delayed") == 1 || Record.of(name).size == 2 }
      refute UniqueJob.perform_later(name) if Record.of(name).size == 1
      assert_equal [1, 2], recorded(2)
      until_done
      assert UniqueJob.perform_later(name)
      assert_equal [1, 2, 1], recorded(3)
    end
  end

  def test_a_unique_job_can_be_replaced
    LastWordJob.set(wait: 600).perform_later(name, "first")
    assert LastWordJob.perform_later(name, "last")
    work { assert_equal %w[last], recorded(1) }
  end

  def test_many_jobs_of_which_one_is_there_already
    skip "perform_all_later came with Rails 7.1" unless ActiveJob.respond_to?(:perform_all_later)

    jobs = %w[1 2 1].map { |id| UniqueJob.new(id) }
    ActiveJob.perform_all_later(jobs)
    assert_equal([true, true, false], jobs.map(&:successfully_enqueued?))
    assert_match(/the queue has a job of the id "order-1"/, jobs.last.enqueue_error.message)
  end

  def test_jobs_of_a_group_run_one_after_the_other
    6.times { |number| GroupJob.perform_later(name, number) }
    expected = Array.new(6) { |number| ["begin #{number}", "end #{number}"] }.flatten
    work("default=4") { assert_equal expected, recorded(12) }
  end

  def test_a_result_can_be_awaited
    job = SumJob.perform_later(1, 2, 3)
    rescued = RescuedSumJob.perform_later
    work do
      assert_equal '{"sum":6}', DQ.queue("default").await(job.provider_job_id, timeout: 60)
      assert_nil DQ.queue("default").await(rescued.provider_job_id, timeout: 60)
    end
  end

  def test_a_job_can_be_cancelled
    job = NoteJob.set(wait: 600).perform_later(name)
    assert_equal "delayed", DQ.cancel(job)
    assert_nil DQ.cancel(job)
    assert_equal "ready", DQ.cancel(NoteJob.perform_later(name))
    assert_equal 0, server.len("default")
  end

  def test_a_unique_job_can_be_cancelled_by_one_who_did_not_enqueue_it
    UniqueJob.set(wait: 600).perform_later("7")
    assert_equal "delayed", DQ.cancel(UniqueJob.new("7"))
  end

  def test_a_job_can_be_moved
    job = NoteJob.set(wait: 600).perform_later(name)
    assert DQ.reschedule(job, at: Time.now + 1200)
    assert_operator server.message("default", job.job_id)["due"], :>, milliseconds + 1_100_000
    assert DQ.reschedule(job, at: Time.now)
    work { recorded(1) }
    until_done
    refute DQ.reschedule(job, at: Time.now)
  end

  def test_a_job_is_moved_to_a_time_only
    job = NoteJob.set(wait: 600).perform_later(name)
    due = server.message("default", job.job_id)["due"]
    [5.minutes, "2040-01-01", nil, :soon].each { |at| assert_raises(ArgumentError) { DQ.reschedule(job, at: at) } }
    assert_equal due, server.message("default", job.job_id)["due"]
  end

  def test_a_time_may_be_a_duration_of_rails
    queue = DQ.queue("mail")
    id = queue.push("x", delay: 10.minutes, lease: 1.minute, ttl: 2.5.hours, retain: 2.days)
    assert_equal [60_000, 9_000_000, 172_800_000], server.message("mail", id).values_at("lease", "ttl", "retain")
    assert_in_delta milliseconds + 600_000, server.message("mail", id)["due"], 60_000
    queue.alter(backoff: [1.second, 1.hour], rate: [10, 1.minute])
    assert_equal [1000, 3_600_000], server.info("mail").values_at("backoff-base", "backoff-max")
    assert_raises(ArgumentError) { queue.push("x", retries: 5.minutes) }
    assert_raises(DQ::WaitTimeout) { queue.await(id, timeout: 0.1.seconds) }
    settings = DQ::Settings.new(url: server.url, timeout: 5.seconds)
    assert_equal [Float], settings.options.values.grep(Numeric).map(&:class), "a guard has no Rails"
  end

  def test_a_job_may_ask_for_a_retry_after_a_duration
    id = LaterJob.perform_later(name).job_id
    work("--time-limit", "60") do
      recorded(1)
      Patience.until("it waits") { server.message("default", id)["state"] == "delayed" }
    end
    assert_operator server.message("default", id)["due"], :>, milliseconds + 300_000
  end

  def test_a_job_that_runs_is_told_that_it_was_cancelled
    job = WaitingJob.perform_later(name)
    work do
      assert_equal [job.job_id], recorded(1)
      assert_equal "inflight", DQ.cancel(job)
      assert_equal [job.job_id, "lost: true"], recorded(2)
      NoteJob.perform_later(name)
      recorded(3)
      until_done
      assert_equal 3, Record.of(name).size, "what was cancelled is not retried, although it retries on any error"
    end
  end

  def test_a_retry_that_is_interrupted_by_a_kill_makes_one_retry
    KilledInBetweenJob.perform_later(name)
    start("--lease", "5").wait
    work("default=2", "--lease", "5") do # The retry must not end before the lease of the first delivery.
      assert_equal [1, 2], recorded(2)
      until_done
    end
    assert_equal [1, 2], Record.of(name)
  end

  def test_a_job_that_kills_its_process_comes_back_until_it_is_dead
    job = DeadlyJob.perform_later(name)
    2.times { start("--lease", "0.5").wait }
    assert_equal [1, 2], Record.of(name)
    Patience.until("it is dead") { server.message("default", job.job_id)["state"] == "dead" }
    assert_equal "retries", server.message("default", job.job_id)["reason"]
  end

  def test_a_job_of_an_unknown_class_waits_and_is_dead_at_last
    give_up_soon
    payload = JSON.generate(NoteJob.new(name).serialize.merge("job_class" => "GoneJob"))
    assert_dead(/uninitialized constant GoneJob/, server.do("DQ.PUSH", "default", payload))
  end

  def test_a_job_whose_record_is_gone_waits_and_is_dead_at_last
    give_up_soon
    order = Order.create!(state: "open")
    id = OrderJob.perform_later(name, order).job_id
    order.destroy
    assert_dead(/DeserializationError.*Order/, id)
  end

  def test_a_payload_that_is_no_job_waits_and_is_dead_at_last
    give_up_soon
    ["no JSON", "\xff", "[1]", "{}", '{"job_class":1}'].each do |payload|
      assert_dead(/the payload is no job of Active Job/, server.do("DQ.PUSH", "default", payload))
    end
  end

  def test_a_job_that_fails_is_logged_with_its_class_its_id_and_its_cause
    job = FailingJob.perform_later(name)
    log = assert_dead(/RuntimeError: no paper in the printer/, job.job_id)
    assert_includes log, "FailingJob"
    assert_includes log, job.job_id
    assert_match(/dq_jobs\.rb:\d+/, log)
  end

  def test_a_worker_that_stops_gives_back_what_it_has_not_done
    job = StubbornJob.perform_later(name)
    worker = start("--grace", "0.2")
    recorded(1)
    assert_equal 0, worker.stop
    assert_equal "ready", server.message("default", job.job_id)["state"]
    FileUtils.touch("#{Record.path}.calm")
    work { assert_equal ["attempt 1", "attempt 1"], recorded(2) }
  end

  def test_a_second_signal_ends_a_worker_at_once
    StubbornJob.perform_later(name)
    worker = start("--grace", "600")
    recorded(1)
    2.times do
      worker.signal(:TERM)
      sleep 0.2 # Two signals at the same instant would be one.
    end
    refute_predicate worker.wait, :success?
  end

  def test_a_wrong_command_line_is_refused
    ["", "default=none", "default=0", "default=1 --lease -1", "default=1 --what"].each do |words|
      refute_predicate start(*words.split, queues: []).wait, :success?, words
    end
  end

  def test_an_enqueuing_names_a_server_without_the_module
    plain = TestServer.new(with_module: false).boot
    DQ.redis = { url: plain.url }
    error = assert_raises(DQ::Error) { NoteJob.perform_later(name) }
    assert_includes error.message, "the server has not loaded the module dq"
  ensure
    DQ.redis = { url: server.url }
    plain.close
  end

  def test_jobs_of_sidekiq_that_were_imported_run
    wrapped = { "class" => "Sidekiq::ActiveJob::Wrapper", "wrapped" => "NoteJob", "queue" => "default",
                "jid" => "a" * 24, "args" => [NoteJob.new(name).serialize] }
    server.do("LPUSH", "queue:default", JSON.generate(wrapped))
    import_from_sidekiq("queue:default", "default")
    work { assert_equal %w[ran], recorded(1) }
  end

  private

  # Has the queue retry once, after a moment.
  def give_up_soon
    server.do("DQ.ALTER", "default", "MKQUEUE", "BACKOFF", 10, 10, "RETRIES", 1)
  end

  # Works until a message is dead, and checks its error and its attempts.
  #
  # @return [String] what the worker logged
  def assert_dead(error, id)
    give_up_soon
    work do |worker|
      Patience.until(-> { "#{id} is dead: #{server.message("default", id)}" }) do
        server.message("default", id)["state"] == "dead"
      end
      message = server.message("default", id)
      assert_match error, message["error"]
      assert_equal 2, message["attempt"]
      worker.output
    end
  end
end
