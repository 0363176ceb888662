# frozen_string_literal: true

require_relative "test_helper"

class QueueTest < ServerTest
  def test_a_message_has_the_options_of_its_push
    at = Time.now + 60
    id = queue.push("x", at: at, priority: 3, group: "g", retries: 2, lease: 7.5, ttl: 90, headers: { "a" => "ü" })
    fields = queue.get(id)
    assert_equal %w[delayed x g], fields.values_at("state", "payload", "group")
    assert_equal [3, 2, 7500, 90_000], fields.values_at("priority", "retries", "lease", "ttl")
    assert_equal (at.to_r * 1000).ceil, fields["due"]
    assert_equal({ "a" => "ü" }, fields["headers"])
  end

  def test_a_time_is_rounded_up_to_a_millisecond
    assert_equal 1, DQ::Words.milliseconds(:delay, 0.0001)
    assert_equal 300, DQ::Words.milliseconds(:delay, 0.1 + 0.2)
    assert_equal(-5, DQ::Words.milliseconds(:delay, -0.005))
    assert_equal 1_700_000_000_001, DQ::Words.unix_milliseconds(:at, 1_700_000_000.0005)
  end

  def test_options_that_mean_nothing_are_refused
    [{ dely: 5 }, { delay: "soon" }, { delay: Float::NAN }, { at: "noon" }, { priority: 1.5 }, { replace: "yes" },
     { headers: [["a", 1]] }, { headers: { "a" => 1 } }, { group: 7 }].each do |options|
      error = assert_raises(ArgumentError) { queue.push("x", **options) }
      assert_includes error.message, options.keys.first.to_s
    end
    assert_equal 0, queue.len
  end

  def test_a_payload_or_an_id_that_is_no_string_is_refused
    [{ "a" => 1 }, ["x"], nil, 1.5].each do |wrong|
      assert_raises(ArgumentError) { queue.push(wrong) }
      assert_raises(ArgumentError) { queue.push_many([wrong, "y"]) }
      assert_raises(ArgumentError) { queue.cancel(wrong) }
    end
    assert_equal 0, queue.len
  end

  def test_a_second_push_of_an_id_is_nil
    assert_equal "one", queue.push("x", id: "one")
    assert_nil queue.push("x", id: "one")
    assert_equal [nil, "two"], queue.push_many(%w[x y], ids: %w[one two])
  end

  def test_many_messages_get_ids_of_their_own
    ids = queue.push_many(%w[x y z], delay: 60)
    assert_equal(%w[x y z], ids.map { |id| queue.get(id)["payload"] })
    assert_empty queue.push_many([])
    assert_raises(ArgumentError) { queue.push_many(["x"], ids: []) }
  end

  def test_a_dead_message_is_an_error_for_its_id_only
    queue.push("x", id: "dead")
    server.do("DQ.BURY", "q", "dead")
    assert_raises(DQ::DeadId) { queue.push("x", id: "dead") }
    refused, id = queue.push_many(%w[x y], ids: %w[dead new])
    assert_kind_of DQ::DeadId, refused
    assert_equal "new", id
  end

  def test_refusals_have_classes
    queue("full").create(max_len: 1)
    queue("full").push("x")
    assert_raises(DQ::QueueFull) { queue("full").push("x") }
    queue("small").create(max_payload: 1)
    assert_raises(DQ::TooLarge) { queue("small").push("xy") }
    queue.push("x")
    queue.pause(60, flow: :in)
    assert_raises(DQ::QueueClosed) { queue.push("x") }
  end

  def test_messages_are_changed_and_removed
    id = queue.push("x", delay: 60)
    assert queue.reschedule(id, delay: 120)
    refute queue.reschedule("none", delay: 120)
    assert_raises(ArgumentError) { queue.reschedule(id) }
    assert_equal 1, queue.promote
    assert_equal "ready", queue.cancel(id)
    assert_nil queue.cancel(id)
    queue.push_many(%w[x y], group: "g")
    assert_equal 2, queue.len(:ready, group: "g")
    assert_equal(%w[x y], queue.peek(:ready, 5).map { |fields| fields["payload"] })
    assert_equal 2, queue.purge(:ready)
    assert_nil queue.get(id)
  end

  def test_a_queue_that_does_not_exist_has_no_info
    assert_nil queue("none").info
    queue.declare(retries: 3, backoff: [1, 60], rate: [100, 1])
    assert_equal [3, 1000, 60_000, 100], queue.info.values_at("retries", "backoff-base", "backoff-max", "rate")
    assert_raises(DQ::Refused) { queue.create(retries: 4) }
  end

  def test_a_batch_and_a_schedule
    queue.push("x", batch: "b")
    assert_equal 1, queue.follow("b", "then", id: "f")
    assert_equal 1, queue.batch_info("b")["left"]
    assert_equal 1, queue.cancel_batch("b")
    assert_nil queue.batch_info("b")
    assert_equal "created", queue.schedule("s", "x", every: 60)
    assert_equal "unchanged", queue.schedule("s", "x", every: 60)
  end

  def test_a_caller_gets_the_result
    work { |message| message.json.merge("seen" => message.attempt) }
    assert_equal({ "a" => 1, "seen" => 1 }, JSON.parse(queue.push_and_wait('{"a": 1}', timeout: 10)))
    id = queue.push('{"a": 2}', retain: 60)
    assert_equal({ "a" => 2, "seen" => 1 }, JSON.parse(queue.await(id, timeout: 10)))
  end

  def test_a_caller_gets_the_failure
    work do |message|
      raise DQ::Reject, "no address" if message.payload == "reject"
    end
    error = assert_raises(DQ::Failed) { queue.push_and_wait("reject", timeout: 10) }
    assert_equal ["no address", "rejected"], [error.message, error.reason]
    assert_raises(DQ::NotKept) { queue.await(queue.push("gone"), timeout: 10) }
  end

  def test_a_caller_is_told_of_a_result_that_was_not_kept
    results = { "large" => "x" * 70_000, "no JSON" => Object.new, "empty" => "", "none" => nil }
    work { |message| results.fetch(message.payload) }
    assert_raises(DQ::NotKept) { queue.push_and_wait("large", timeout: 10) }
    assert_raises(DQ::NotKept) { queue.push_and_wait("no JSON", timeout: 10) }
    assert_nil queue.push_and_wait("empty", timeout: 10)
    assert_nil queue.push_and_wait("none", timeout: 10)
  end

  def test_a_caller_without_time_does_not_wait_for_a_server_that_does_not_answer
    link = DQ::Client.new({ url: server.url, timeout: 0.3 }).settings.link("q")
    assert_nil link.call("DQ.AWAIT", "q", "id", "BLOCK", 1, seconds: 0)
    server.signal(:STOP)
    waiting = Thread.new do
      assert_raises(DQ::ConnectionLost) { link.call("DQ.AWAIT", "q", "id", "BLOCK", 1, seconds: 0) }
    end
    assert waiting.join(Patience::SECONDS), "it waits for ever"
  ensure
    server.signal(:CONT)
    link.close
  end

  def test_a_caller_waits_no_longer_than_it_wants
    assert_raises(DQ::WaitTimeout) { queue.push_and_wait("x", timeout: 0.05) }
    begun = DQ.now
    assert_raises(DQ::WaitTimeout) { queue.await(queue.push("x", retain: 5), timeout: 0.3) }
    assert_operator DQ.now - begun, :>=, 0.3
  end

  def test_a_push_can_be_sent_once_only
    once = DQ::Client.new("redis://127.0.0.1:#{TestServer.free_port}", push_timeout: 0)
    begun = DQ.now
    error = assert_raises(DQ::ConnectionLost) { once.queue("q").push("x") }
    assert_operator DQ.now - begun, :<, 5
    refute_predicate error, :may_have_run?
    assert_raises(ArgumentError) { DQ::Client.new(server.url, push_timeout: -1) }
  end

  def test_all_threads_share_a_client
    threads = Array.new(20) { |number| Thread.new { queue.push(number.to_s) } }
    assert_equal 20, threads.map(&:value).uniq.size
    assert_equal 20, queue.len
  end

  def test_a_process_that_was_forked_opens_connections_of_its_own
    queue.push("parent")
    reader, writer = IO.pipe
    pid = fork do
      writer.write(queue.push("child"))
      exit!(0)
    end
    writer.close
    Process.wait(pid)
    assert_equal "child", queue.get(reader.read)["payload"]
    assert_equal 2, queue.len
  end
end
