# frozen_string_literal: true

require_relative "test_helper"

class WorkerTest < ServerTest
  # What a handler may do besides returning, and what its error then has.
  ENDS = {
    "an error" => [-> { raise "no oven" }, "RuntimeError: no oven"],
    "an error without a text" => [-> { raise StandardError, nil.to_s }, "StandardError"],
    "no StandardError" => [-> { raise NotImplementedError, "later" }, "NotImplementedError: later"],
    "exit" => [-> { exit(3) }, "SystemExit"],
    "throw" => [-> { throw(:done) }, "UncaughtThrowError"],
    "the end of its thread" => [-> { Thread.exit }, "ended its thread"],
    "an endless recursion" => [-> { (recurse = -> { recurse.call }).call }, "SystemStackError"],
    "an error whose text is one" => [-> { raise Unreadable }, "cannot be read"]
  }.freeze

  class Unreadable < StandardError
    def message = raise("no text")
  end

  ENDS.each do |name, (ends, error)|
    define_method("test_a_handler_that_ends_by_#{name.tr(" ", "_")}_has_failed_once") do
      queue.declare(backoff: [60, 60])
      work { |message| message.payload == "x" ? ends.call : nil }
      id = queue.push("x")
      event(:failed)
      counted("delayed", 1)
      assert_includes queue.get(id)["error"], error
      queue.push("y")
      counted("acked", 1)
      assert_equal 2, queue.info["delivered"]
    end
  end

  def test_an_error_is_stored_and_logged_with_its_cause_and_backtrace
    queue.declare(retries: 0)
    work do
      raise "the oven is cold"
    rescue RuntimeError
      raise ArgumentError, "no cake"
    end
    id = queue.push("x")
    counted("dead", 1)
    error = queue.get(id)["error"]
    assert_match(/\AArgumentError: no cake\ncaused by RuntimeError: the oven is cold\n.*worker_test\.rb:/, error)
    Patience.until("the log") { @log.string.include?("now dead") }
    assert_match(/q: #{id} failed at attempt 1: ArgumentError: no cake; now dead/, @log.string)
    assert_match(/caused by RuntimeError: the oven is cold\n\s+\S*worker_test\.rb:/, @log.string)
  end

  def test_the_log_names_the_kind_of_a_message
    at = DQ::Client.new(server.url)
    worker = DQ::Worker.new(client: at, logger: Logger.new(@log), hook: @events.method(:push))
    worker.consume("q", kind: ->(message) { message.payload[/\w+Job/] }) { raise "no" }
    worker.start
    @closing << -> { worker.stop }
    id = queue.push("MailJob 4711")
    assert_equal "MailJob", event(:failed).job
    Patience.until("the log") { @log.string.include?("q: MailJob #{id} failed at attempt 1: RuntimeError: no") }
    refute_includes @log.string, "4711"
  end

  def test_a_logger_and_a_hook_that_fail_or_block_harm_nothing
    logger = Logger.new(File::NULL)
    logger.define_singleton_method(:add) { |*| raise "the disk is full" }
    at = DQ::Client.new(server.url)
    worker = DQ::Worker.new(client: at, logger: logger, hook: ->(event) { event.kind == :started ? sleep : raise("x") })
    worker.consume("q") { nil }
    worker.start
    3.times { queue.push("x") }
    counted("acked", 3)
    assert_predicate worker, :healthy?
    worker.stop
  end

  def test_a_handler_that_forks_is_one_handler
    work do
      Process.wait(fork { exit!(0) })
      child = fork # The child returns from the handler, too.
      Process.wait(child) if child
    end
    queue.push("x")
    counted("acked", 1)
    assert_equal 1, queue.info["delivered"]
  end

  def test_a_worker_may_be_made_before_its_process_is_forked
    at = DQ::Client.new(server.url)
    worker = DQ::Worker.new(client: at, grace: 0.2, logger: Logger.new(@log))
    worker.consume("q") { |message| message.wait(message.payload.to_f) }
    child = fork { exit!(worker.run) }
    queue.push("0")
    counted("acked", 1)
    queue.push("60", id: "held")
    counted("inflight", 1)
    assert_includes queue.get("held")["consumer"], ":#{child}:"
    Process.kill(:TERM, child)
    status = Process.wait2(child).last
    child = nil
    assert_equal 0, status.exitstatus
  ensure
    Process.kill(:KILL, child) if child
  end

  def test_a_message_whose_handler_gets_no_thread_goes_back_uncounted
    refusals = 1
    worker = work { nil }
    handlers = worker.instance_variable_get(:@handlers)
    handlers.define_singleton_method(:start_thread) do |lane, delivery|
      raise ThreadError, "can't create Thread" if (refusals -= 1) >= 0

      super(lane, delivery)
    end
    queue.push("x")
    assert_includes event(:refused).text, "can't create Thread"
    counted("acked", 1)
    assert_equal [1, 0, 2], queue.info.values_at("given-back", "nacked", "delivered")
  end

  def test_an_outcome_that_cannot_be_sent_keeps_no_place
    faults = 1
    worker = work(concurrency: 1, lease: 0.5) { |message| raise DQ::Reject, "no" if message.payload == "x" }
    reporter, = worker.instance_variable_get(:@reporters)
    reporter.define_singleton_method(:outcome_command) do |*given|
      raise TypeError, "no word of a command" if (faults -= 1) >= 0

      super(*given)
    end
    queue.push("x")
    queue.push("y")
    counted("dead", 1)
    counted("acked", 1)
    assert_includes @log.string, "begins again after an unexpected error"
  end

  def test_names_and_errors_in_any_encoding_keep_no_place
    name = "q\xFF\0".b
    worker = DQ::Worker.new(client: client, grace: 0.2, logger: Logger.new(@log))
    kind = ->(_message) { "B\xE9zier".dup.force_encoding(Encoding::ISO_8859_1) }
    worker.consume(name, concurrency: 1, kind: kind) do |message|
      raise DQ::Reject, "zu früh \xFF" if message.payload == "x"
    end
    worker.start
    queue(name).push("x", id: "früh")
    queue(name).push("y")
    counted("acked", 1, name)
    Patience.until(-> { @log.string }) { @log.string.include?("Bézier früh rejected at attempt 1: zu früh") }
    worker.stop
    refute_includes @log.string, "unexpected"
  end

  def test_each_handler_has_a_context_of_its_own
    seen = Thread::Queue.new
    work(concurrency: 1) do |message|
      seen << [Thread.current[:locale], DQ.message.id == message.id]
      Thread.current[:locale] = "de"
      nil
    end
    3.times { queue.push("x") }
    counted("acked", 3)
    assert_equal [[nil, true]] * 3, Array.new(3) { seen.pop }
    assert_nil DQ.message
  end

  def test_a_time_limit_ends_a_handler_that_does_not_look
    queue.declare(retries: 0)
    ended = Thread::Queue.new
    work(time_limit: 0.2) do
      begin
        sleep
      rescue StandardError
        retry
      end
    ensure
      ended << true
    end
    id = queue.push("x")
    ended.pop
    counted("dead", 1)
    assert_includes queue.get(id)["error"], "time limit of 0.2 s"
  end

  def test_a_handler_waits_no_longer_than_it_has_its_message
    ended = Thread::Queue.new
    work do |message|
      message.wait(60)
    rescue DQ::Lost => error
      ended << [error.message, message.reason, message.lost?]
    end
    event(:ready) # Before there is a subscription, no notice tells the reason.
    queue.push("x", id: "m")
    event(:started)
    queue.cancel("m")
    assert_equal ["cancelled", "cancelled", true], ended.pop
    assert_equal "cancelled", event(:lost).text
  end

  def test_a_checkpoint_is_there_for_the_next_attempt
    queue.declare(backoff: [0.05, 0.05])
    seen = Thread::Queue.new
    work do |message|
      seen << message.checkpoint
      message.save("page #{message.attempt}")
      raise "once more" if message.attempt < 3
    end
    queue.push("x")
    counted("acked", 1)
    assert_equal [nil, "page 1", "page 2"], Array.new(3) { seen.pop }
  end

  def test_a_checkpoint_that_is_no_string_fails_its_handler
    queue.declare(backoff: [60, 60])
    work { |message| message.save([1]) if message.payload == "x" }
    id = queue.push("x")
    assert_includes event(:failed).text, "a checkpoint is a String, not a Array"
    counted("delayed", 1)
    assert_includes queue.get(id)["error"], "a checkpoint"
    queue.push("y")
    counted("acked", 1)
  end

  # Sees messages on both sides.
  class Tenant < DQ::Middleware
    def push(_queue, headers)
      headers["tenant"] ||= "ann"
    end

    def handle(message)
      Thread.current[:tenant] = message.headers["tenant"]
      yield
    rescue ArgumentError
      nil # What it swallows is done.
    end
  end

  def test_middleware_sees_both_sides
    seen = Thread::Queue.new
    work(middleware: [Tenant.new]) do |message|
      seen << Thread.current[:tenant]
      raise ArgumentError if message.payload == "swallow"
    end
    client.middleware << Tenant.new
    queue.push("x")
    queue.push("swallow", headers: { "tenant" => "ben" })
    counted("acked", 2)
    assert_equal %w[ann ben], [seen.pop, seen.pop].sort
  end

  def test_middleware_that_fails_fails_the_message
    queue.declare(backoff: [60, 60])
    bad = DQ::Middleware.new
    bad.define_singleton_method(:handle) { |_message| raise "no tenant" }
    called = false
    work(middleware: [bad]) { called = true }
    queue.push("x")
    assert_includes event(:failed).text, "no tenant"
    refute called
  end

  def test_a_worker_whose_handlers_hang_is_stuck
    worker = work(concurrency: 1) { sleep }
    worker.define_singleton_method(:patience_with) { |_lane| 0.2 }
    queue.push("x", id: "m")
    event(:started)
    refute_predicate worker, :stuck?
    queue.cancel("m")
    Patience.until("it is stuck") { worker.stuck? }
    refute_predicate worker, :healthy?
  end

  def test_a_worker_tells_of_its_health
    server.signal(:STOP)
    worker = DQ::Worker.new(client: client, logger: Logger.new(@log))
    worker.consume("q", concurrency: 1) { sleep }
    refute_predicate worker, :healthy?
    server.signal(:CONT)
    worker.start
    Patience.until("it is healthy") { worker.healthy? }
    worker.stop
    refute_predicate worker, :healthy?
  end

  def test_what_is_not_done_at_a_stop_goes_back_uncounted
    worker = work { sleep }
    id = queue.push("x")
    event(:started)
    worker.stop
    assert_equal ["ready", 0], queue.get(id).values_at("state", "attempt")
    assert_includes @log.string, "has stopped; 1 messages went back"
    @closing.pop
  end

  def test_a_stop_tells_of_outcomes_that_the_server_has_not_accepted
    worker = work { sleep }
    queue.push("x")
    event(:started)
    server.kill
    assert_equal 1, worker.stop
    assert_match(/ERROR.* could not report 1 messages.*\n.* has stopped; 0 messages went back/, @log.string)
    @closing.pop
  end

  def test_a_worker_refuses_what_it_does_not_understand
    [{ lease: 0 }, { lease: "30" }, { grace: -1 }, { time_limit: 0 }, { keep: :fork }].each do |options|
      assert_raises(ArgumentError) { DQ::Worker.new(client: client, **options) }
    end
    worker = DQ::Worker.new(client: client)
    assert_raises(ArgumentError) { worker.consume("q", concurrency: 0) { nil } }
    assert_raises(ArgumentError) { worker.consume("q") }
    worker.consume("q") { nil }
    assert_raises(ArgumentError) { worker.consume("q") { nil } }
    assert_raises(ArgumentError) { DQ::Worker.new(client: client).start }
  end

  def test_a_payload_that_is_not_json_shows_nothing_of_itself
    queue.declare(backoff: [60, 60])
    work(&:json)
    id = queue.push('{"card": "4711", ')
    counted("delayed", 1)
    assert_includes queue.get(id)["error"], "JSON"
    refute_includes queue.get(id)["error"] + @log.string, "4711"
  end
end
