# frozen_string_literal: true

# What Active Job promises, on the adapter that DQ_TEST_ADAPTER names: the same tests for `async` and for `dq`.
require_relative "support/case"

class JobsTest < ActiveJobCase
  def test_a_job_runs_later
    NoteJob.perform_later(name)
    assert_equal %w[ran], recorded(1)
  end

  def test_a_job_runs_at_once_if_it_is_told_to
    NoteJob.perform_now(name)
    assert_equal %w[ran], Record.of(name)
  end

  def test_what_was_enqueued_has_an_id_of_its_own
    jobs = Array.new(2) { NoteJob.perform_later(name) }
    assert_equal 2, jobs.map(&:job_id).uniq.size
    assert_equal 2, jobs.map(&:provider_job_id).compact.uniq.size
    recorded(2)
  end

  def test_a_delayed_job_is_never_early
    due = milliseconds + 300
    NoteJob.set(wait: 0.3).perform_later(name)
    recorded(1)
    assert_operator Record.times(name).first, :>=, due
  end

  def test_a_job_runs_at_its_time
    due = Time.at(Time.now.to_f + 0.3)
    NoteJob.set(wait_until: due).perform_later(name)
    recorded(1)
    assert_operator Record.times(name).first, :>=, (due.to_f * 1000).floor
  end

  def test_a_job_whose_time_has_passed_runs
    NoteJob.set(wait_until: Time.at(Time.now.to_f - 60)).perform_later(name)
    recorded(1)
  end

  def test_jobs_of_another_queue_run
    NoteJob.set(queue: "mail").perform_later(name)
    recorded(1)
  end

  def test_a_priority_is_kept
    assert_equal 7, NoteJob.set(priority: 7).perform_later(name).priority
    assert_equal 1, UrgentJob.perform_later(name).priority
    recorded(2)
  end

  def test_many_jobs_are_enqueued_together
    skip "perform_all_later came with Rails 7.1" unless ActiveJob.respond_to?(:perform_all_later)

    jobs = Array.new(20) { |number| NoteJob.new(name, number) }
    jobs += [NoteJob.new(name, "later").set(wait: 0.1), NoteJob.new(name, "elsewhere").set(queue: "mail")]
    ActiveJob.perform_all_later(jobs)
    assert(jobs.all?(&:successfully_enqueued?))
    assert_equal [*0..19, "later", "elsewhere"].map(&:to_s).sort, recorded(22).map(&:to_s).sort
  end

  def test_a_job_is_retried_until_it_succeeds
    RetriedJob.perform_later(name, failures: 2)
    assert_equal ["execution 1", "execution 2", "execution 3", "done"], recorded(4)
  end

  def test_what_is_to_happen_after_the_last_attempt_happens
    GivenUpJob.perform_later(name)
    assert_equal ["execution 1", "execution 2", "given up"], recorded(3)
  end

  def test_a_job_is_discarded
    RetriedJob.perform_later(name, failures: 1, error: "ShopIsClosed")
    assert_equal ["execution 1", "discarded: of a test"], recorded(2)
  end

  def test_an_error_is_rescued
    RetriedJob.perform_later(name, failures: 1, error: "PaymentRefused")
    assert_equal ["execution 1", "rescued: of a test"], recorded(2)
  end

  def test_callbacks_run_in_their_order
    CallbackJob.perform_later(name)
    expected = ["before enqueue", "before perform", "around perform", "perform", "after perform"]
    assert_equal expected, recorded(6) - ["after enqueue"]
    assert_includes Record.of(name), "after enqueue"
  end

  def test_a_callback_can_stop_an_enqueuing
    refute HaltedJob.perform_later(name)
    NoteJob.perform_later(name)
    assert_equal %w[ran], recorded(1)
  end

  def test_a_mail_is_delivered_later
    ShopMailer.reminder(name, "ann@example.org").deliver_later
    ShopMailer.reminder(name, "ben@example.org").deliver_later(wait: 0.05)
    assert_equal %w[ann@example.org ben@example.org], recorded(2).sort
  end

  def test_a_record_is_an_argument
    OrderJob.perform_later(name, Order.create!(state: "open"))
    assert_equal %w[open], recorded(1)
  end

  def test_a_job_can_be_discarded_whose_record_is_gone
    order = Order.create!(state: "open")
    order.destroy
    TolerantOrderJob.perform_later(name, order)
    Patience.until("it is discarded") { Record.of("tolerant").any? }
  end

  def test_arguments_arrive_as_they_were
    time = Time.at(1_800_000_000).in_time_zone("UTC")
    arguments = [1, "ü", :symbol, nil, true, 1.5, 10.days, time, Money.new(990, "EUR")]
    ArgumentJob.perform_later(name, *arguments, key: [{ a: 1 }])
    classes, options = recorded(1).first
    expected = ["Integer: 1", "String: ü", "Symbol: symbol", "NilClass: ", "TrueClass: true", "Float: 1.5"]
    assert_equal expected, classes.first(6)
    assert_includes classes.last, "cents=990"
    assert_equal [":key"], options
  end

  def test_a_job_enqueues_the_next
    ChainJob.perform_later(name, 3)
    assert_equal [3, 2, 1, 0], recorded(4)
  end

  def test_a_job_has_the_language_and_the_time_zone_of_its_producer
    I18n.with_locale(:de) { Time.use_zone("Europe/Berlin") { LocaleJob.perform_later(name) } }
    assert_equal [["de", "Europe/Berlin"]], recorded(1)
  end

  def test_a_job_of_a_transaction_is_enqueued_when_that_is_committed
    skip "enqueue_after_transaction_commit came with Rails 7.2" unless after_commit?

    Order.transaction do
      after_commit_job.perform_later(name, Order.create!(state: "committed"))
      assert_empty Record.of(name)
    end
    assert_equal %w[committed], recorded(1)
  end

  def test_a_job_of_a_transaction_that_is_rolled_back_is_not_enqueued
    skip "enqueue_after_transaction_commit came with Rails 7.2" unless after_commit?

    Order.transaction do
      after_commit_job.perform_later(name, Order.create!(state: "rolled back"))
      raise ActiveRecord::Rollback
    end
    NoteJob.perform_later(name)
    assert_equal %w[ran], recorded(1)
  end

  private

  def after_commit?
    ActiveJob::Base.respond_to?(:enqueue_after_transaction_commit=)
  end

  # Whether a job waits for the commit is what its class says, or what the adapter recommends.
  def after_commit_job
    AfterCommitJob.tap { |job| job.enqueue_after_transaction_commit = :default }
  end
end
