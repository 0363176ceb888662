# frozen_string_literal: true

require_relative "test_helper"

# What docs/clients.md says of redis-client, and its program.
class PageOfClientsTest < ServerTest
  PAGE = File.read(File.expand_path("../../../docs/clients.md", __dir__))
  PROGRAM = PAGE[/^```ruby\n(.*?)^```/m, 1]

  def setup
    super
    @redis = connect
  end

  def connect(**options)
    RedisClient.new(port: server.port, **options).tap { |redis| @closing << redis.method(:close) }
  end

  # Cuts the connection of a client off once its pop waits.
  def cut_off(redis)
    id = redis.call("CLIENT", "ID")
    Thread.new do
      until_waiting(1)
      @redis.call("CLIENT", "KILL", "ID", id)
    end
  end

  def until_waiting(count)
    Patience.until("#{count} clients wait") { @redis.call("INFO", "dq").include?("dq_blocked_clients:#{count}\r\n") }
  end

  def test_the_program_runs
    text = PROGRAM.gsub("6379", server.port.to_s)
    running = program(file("program.rb", text))
    assert_predicate running.wait, :success?, running.output
    assert_equal "order-1001 order 1001 1\n", running.output
    counted("acked", 1, "orders:close")
  end

  def test_a_pop_that_times_out_ends_its_wait
    error = assert_raises(RedisClient::ReadTimeoutError) do
      connect(timeout: 0.2).call("DQ.POP", "q", "BLOCK", 60_000)
    end
    assert_match(/0.2 seconds/, error.message)
    until_waiting(0)
    assert_in_delta 1, connect.read_timeout
    assert_nil connect(timeout: 0.1).blocking_call(10, "DQ.POP", "q", "BLOCK", 300)
  end

  def test_a_waiting_pop_is_sent_again_only_if_attempts_are_asked_for
    redis = connect
    cutting = cut_off(redis)
    assert_raises(RedisClient::ConnectionError) { redis.blocking_call(10, "DQ.POP", "q", "BLOCK", 60_000) }
    cutting.join

    stubborn = connect(reconnect_attempts: 1)
    cutting = cut_off(stubborn)
    popping = Thread.new { stubborn.blocking_call(30, "DQ.POP", "q", "BLOCK", 20_000) }
    cutting.join
    until_waiting(1)
    @redis.call("DQ.PUSH", "q", "x", "ID", "m")
    assert_equal "m", popping.value[0][0]
  end

  def test_maps_texts_and_errors_are_as_the_page_says
    @redis.call("DQ.PUSH", "q", "x", "ID", "m")
    assert_equal "ready", @redis.call("DQ.GET", "q", "m")["state"]
    assert_equal "id", connect(protocol: 2).call("DQ.GET", "q", "m")[0]
    assert_equal Encoding::UTF_8, @redis.call("DQ.POP", "q")[0][1].encoding
    assert_raises(RedisClient::CommandError) { @redis.call("DQ.PUSH", "q") }
    @redis.call("DQ.PUSH", "q", "x", "ID", "dead", "DEAD")
    made, refused = @redis.call("DQ.MPUSH", "q", 2, "a", "b", "IDS", "n", "dead")
    assert_equal "n", made
    assert_kind_of RedisClient::CommandError, refused
  end
end
