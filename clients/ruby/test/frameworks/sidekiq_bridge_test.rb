# frozen_string_literal: true

# What Sidekiq has on dq and not otherwise: each test has servers and processes of its own.
ENV["DQ_TEST_BRIDGE"] = "1"
require_relative "support/sidekiq_case"

class SidekiqBridgeTest < SidekiqCase
  attr_reader :server, :sidekiqs_own

  def setup
    @server = TestServer.new.boot
    @sidekiqs_own = TestServer.new(with_module: false).boot
    ENV["DQ_TEST_URL"] = server.url
    ENV["DQ_TEST_SIDEKIQ_URL"] = sidekiqs_own.url
    require_relative "apps/sidekiq_jobs"
    require "sidekiq/api"
    DQ::Sidekiq.install(url: server.url)
    @programs = []
  end

  def teardown
    @programs.each(&:kill)
    server.close
    sidekiqs_own.close
    FileUtils.rm_f("#{Record.path}.calm")
  end

  def test_a_killed_process_loses_nothing
    ids = Array.new(10) { |number| NoteWorker.perform_async("#{name} more", number) }
    jid = SlowWorker.perform_async(name)
    first = start("default", threads: 1, DQ_TEST_LEASE: "1")
    recorded(10, "#{name} more")
    recorded(1)
    first.kill
    calm
    start("default", DQ_TEST_LEASE: "1")
    assert_equal %w[begin begin end], recorded(3)
    until_done
    assert_equal 11, [jid, *ids].uniq.size
    assert_equal [*0..9], Record.of("#{name} more")
  end

  def test_a_process_that_stops_gives_back_what_it_has_not_done
    jid = SlowWorker.perform_async(name)
    process = start("default", timeout: 1)
    recorded(1)
    assert_equal 0, process.stop
    message = server.message("sidekiq:default", jid)
    assert_equal ["ready", 0], message.values_at("state", "attempt")
    calm
    start("default")
    assert_equal %w[begin begin end], recorded(3)
  end

  def test_a_quiet_process_ends_its_jobs_and_takes_no_more
    SlowWorker.perform_async(name)
    process = start("default", timeout: 600)
    recorded(1)
    process.signal(:TSTP)
    process.wait_for("quiet")
    sleep_until_idle
    NoteWorker.perform_async("#{name} next")
    calm
    assert_equal %w[begin end], recorded(2)
    until_done(1)
    assert_equal 0, process.stop
    assert_empty Record.of("#{name} next")
    assert_equal 1, server.len("sidekiq:default", "ready")
  end

  def test_a_scheduled_job_waits_in_the_server_and_can_be_cancelled
    jid = NoteWorker.perform_in(3600, name)
    message = server.message("sidekiq:default", jid)
    assert_equal "delayed", message["state"]
    assert_equal "delayed", DQ::Sidekiq.queue("default").cancel(jid)
    assert_equal 0, sidekiqs_own.do("ZCARD", "schedule")
  end

  def test_jobs_due_together_run_in_the_order_in_which_they_were_pushed
    due = Time.now.to_f + 0.5
    20.times { |number| NoteWorker.perform_at(due, name, number) }
    start("default", threads: 1)
    assert_equal [*0..19], recorded(20)
  end

  def test_queues_are_served_in_their_order
    %w[low high].each { |queue| 3.times { NoteWorker.set(queue: queue).perform_async(name, queue) } }
    start("high", "low", threads: 1)
    assert_equal %w[high high high low low low], recorded(6)
  end

  def test_weighted_queues_are_all_served
    %w[low high].each { |queue| 3.times { NoteWorker.set(queue: queue).perform_async(name, queue) } }
    start("high,3", "low,1", threads: 1)
    assert_equal %w[high high high low low low], recorded(6).sort
  end

  def test_a_job_may_take_longer_than_its_lease
    jid = SlowWorker.perform_async(name)
    start("default", DQ_TEST_LEASE: "0.5")
    recorded(1)
    deadline = server.message("sidekiq:default", jid)["deadline"]
    Patience.until("the lease was extended three times") do
      server.message("sidekiq:default", jid)["deadline"] > deadline + 1000
    end
    calm
    assert_equal %w[begin end], recorded(2)
    until_done
    assert_equal %w[begin end], Record.of(name)
  end

  def test_a_job_that_kills_its_process_each_time_is_dead_at_last
    server.do("DQ.ALTER", "sidekiq:default", "MKQUEUE", "RETRIES", 1, "BACKOFF", 10, 10)
    jid = DeadlyWorker.perform_async(name)
    2.times { start("default", DQ_TEST_LEASE: "0.5").wait }
    Patience.until("it is dead") { server.message("sidekiq:default", jid)["state"] == "dead" }
    assert_equal 2, Record.of(name).size
  end

  def test_a_job_whose_retry_cannot_be_stored_comes_back
    server.do("DQ.ALTER", "sidekiq:default", "MKQUEUE", "BACKOFF", 10, 10)
    FailingWorker.perform_async(name)
    start("default", DQ_TEST_LEASE: "1")
    recorded(1)
    sidekiqs_own.kill
    calm
    assert_equal %w[begin begin end], recorded(3)
    until_done
  ensure
    sidekiqs_own.boot
  end

  def test_a_job_that_is_interrupted_between_two_steps_goes_on
    skip "iterable jobs came with Sidekiq 7.3" unless defined?(Sidekiq::IterableJob)

    ListWorker.perform_async(name)
    process = start("default", timeout: 60)
    recorded(2)
    process.signal(:TERM)
    process.wait_for("Pausing to allow jobs to finish")
    calm
    assert_equal 0, process.wait.exitstatus
    assert_operator Record.of(name).size, :<, 5
    start("default")
    assert_equal [*1..5], recorded(5).uniq
    until_done
  end

  def test_a_process_works_on_when_the_server_is_back
    NoteWorker.perform_async(name)
    start("default")
    recorded(1)
    server.kill
    server.boot
    NoteWorker.perform_async(name)
    recorded(2)
  end

  def test_jobs_that_were_imported_run
    dqctl = ENV.fetch("DQCTL") { skip "DQCTL does not name dqctl" }

    job = { "class" => "NoteWorker", "args" => [name], "jid" => "b" * 24, "queue" => "default", "retry" => true }
    later = { **job, "args" => [name, "later"], "jid" => "c" * 24 }
    server.do("LPUSH", "queue:default", JSON.generate(job))
    server.do("ZADD", "schedule", Time.now.to_f + 0.1, JSON.generate(later))
    command = [dqctl, "--url", server.url, "import", "sidekiq", "default", "sidekiq:default", "--move"]
    assert system(*command, out: File::NULL)
    start("default")
    assert_equal %w[later ran], recorded(2).sort
  end

  def test_a_server_without_the_module_is_named
    error = assert_raises(DQ::Error) do
      DQ::Sidekiq.install(url: sidekiqs_own.url)
      NoteWorker.perform_async(name)
    end
    assert_includes error.message, "the server has not loaded the module dq"
    start("default", DQ_TEST_URL: sidekiqs_own.url).wait_for("the server has not loaded the module dq")
  end

  def test_an_unknown_sidekiq_is_refused
    changed = "def raw_push(payloads, options); end"
    ["undef_method :raw_push", "private #{changed}"].each do |change|
      program = TestProgram.new("-e", <<~RUBY)
        require "dq/sidekiq"
        Sidekiq::Client.class_eval { #{change} }
        begin
          DQ::Sidekiq.install(url: "redis://127.0.0.1")
        rescue DQ::Sidekiq::Unsupported => error
          puts error.message
        end
      RUBY
      assert_equal 0, program.wait.exitstatus
      assert_match(/Sidekiq \d.* has no private method Sidekiq::Client#raw_push\(payloads\)/, program.output)
    end
  end

  def test_a_wrong_lease_is_refused
    [0, -1, "30", nil, Float::INFINITY].each do |lease|
      assert_raises(ArgumentError) { DQ::Sidekiq.install(url: server.url, lease: lease) }
    end
  end

  def test_a_cluster_is_refused
    error = assert_raises(ArgumentError) { DQ::Sidekiq.install(nodes: [server.url]) }
    assert_includes error.message, "cluster"
  end

  def test_a_server_needs_no_url
    DQ::Sidekiq.install(host: "127.0.0.1", port: server.port)
    NoteWorker.perform_async(name)
    assert_equal 1, server.len("sidekiq:default")
  end

  private

  def start(*queues, **options)
    SidekiqProcesses.start(*queues, **options).tap { |program| @programs << program }
  end

  # Lets slow jobs end.
  def calm
    FileUtils.touch("#{Record.path}.calm")
  end

  def until_done(left = 0)
    Patience.until("#{left} messages are left") { server.len("sidekiq:default") == left }
  end

  # Until the waits are over that began before the process was quiet.
  def sleep_until_idle
    Patience.until("no thread waits") { server.do("DQ.INFO", "sidekiq:default")["waiting-clients"].zero? }
  end

  def worker_log
    @programs.map(&:output).join
  end
end
