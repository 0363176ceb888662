# frozen_string_literal: true

require_relative "test_helper"

# What users are told when the server cannot be used, by a push and by a worker.
class TroublesTest < ServerTest
  def push_to(redis, timeout: 0.5)
    other = DQ::Client.new(redis, push_timeout: timeout)
    other.queue("q").push("x")
  ensure
    other&.close
  end

  # What a worker logs.
  def logged(redis)
    worker = work(redis: redis) { nil }
    Patience.until("an error") { @log.string.include?("ERROR") }
    worker.stop
    @closing.pop
    @log.string
  end

  def test_a_server_that_is_gone
    url = "redis://127.0.0.1:#{TestServer.free_port}"
    error = assert_raises(DQ::ConnectionLost) { push_to(url) }
    assert_includes error.message, "Connection refused"
    assert_includes error.message, url.delete_prefix("redis://")
    assert_includes logged(url), "q: interrupted: DQ::ConnectionLost: Connection refused"
  end

  def test_a_server_without_the_module
    bare = TestServer.new(with_module: false).boot
    error = assert_raises(DQ::NoModule) { push_to(bare.url) }
    assert_includes error.message, "the server has not loaded the module dq"
    error = assert_raises(DQ::NoModule) { DQ::Client.new(bare.url, push_timeout: 0.5).queue("q").push("4711") }
    refute_includes error.message, "4711" # The server repeats the payload.
    assert_includes error.message, "DQ.PUSH"
    assert_includes error.message, bare.url
    error = assert_raises(DQ::NoModule) { DQ::Client.new(bare.url, push_timeout: 0.5).queue("q").push("\xFF".b) }
    assert_equal "früh #{error.message}".encoding, Encoding::UTF_8
    assert_includes logged(bare.url), "q: interrupted: DQ::NoModule: the server has not loaded the module dq"
  ensure
    bare.close
  end

  def test_a_wrong_password
    server.do("ACL", "SETUSER", "default", ">secret")
    url = "redis://:other@127.0.0.1:#{server.port}"
    error = assert_raises(DQ::Refused) { push_to(url) }
    assert_match(/\AWRONGPASS/, error.message)
    refute_includes error.message, "other"
    assert_includes logged(url), "q: interrupted: DQ::Refused: WRONGPASS"
  end

  # redis-client 0.22 goes on with a connection that was refused when it was opened.
  def test_a_server_with_too_many_clients_is_waited_for
    queue.push("x", id: "there")
    client.close
    server.do("CONFIG", "SET", "maxclients", 1)
    Thread.new do
      sleep 1
      server.do("CONFIG", "SET", "maxclients", 1000)
    end
    other = DQ::Client.new(server.url)
    assert_nil other.queue("q").push("x", id: "there") # An attempt that may have been made would make it "there".
    other.close
  end

  def test_a_server_that_is_busy_or_a_replica_is_waited_for
    server.do("REPLICAOF", "127.0.0.1", "1")
    error = assert_raises(DQ::Refused) { push_to(server.url) }
    assert_match(/\AREADONLY/, error.message)
    Thread.new do
      sleep 0.5
      server.do("REPLICAOF", "NO", "ONE")
    end
    assert push_to(server.url, timeout: 10)
  end

  def test_a_server_without_hello
    server.do("ACL", "SETUSER", "default", "-hello")
    assert push_to({ url: server.url, protocol: 2 })
    old = TestServer.new("--rename-command", "HELLO", "")
    old.instance_variable_set(:@admin, RedisClient.config(url: old.url, protocol: 2).new_client)
    old.boot
    error = assert_raises(DQ::Refused) { push_to(old.url) }
    assert_includes error.message, "set protocol: 2"
  ensure
    old&.close
  end

  def test_a_node_of_a_cluster_that_does_not_hold_the_queue
    error = DQ::Link.refused(RedisClient::CommandError.parse("MOVED 11182 10.0.0.7:6380"))
    assert_match(/a node of a cluster, and 10\.0\.0\.7:6380 holds the queue/, error.message)
    assert_equal "10.0.0.7:6380", error.address
  end
end
