# frozen_string_literal: true

require "openssl"
require_relative "test_helper"

# Where a server may be, and what of that is refused.
class PlacesTest < Minitest::Test
  def setup
    @closing = []
  end

  def teardown = @closing.reverse_each(&:call)

  def boot(*arguments)
    server = TestServer.new(*arguments)
    @closing << server.method(:close)
    server.boot
  end

  def temporary_directory
    Dir.mktmpdir("dq-place-").tap { |directory| @closing << -> { FileUtils.remove_entry(directory) } }
  end

  # A producer and a worker reach it.
  def assert_works(redis)
    client = DQ::Client.new(redis)
    log = StringIO.new
    worker = DQ::Worker.new(client: client, lease: 0.6, logger: Logger.new(log))
    worker.consume("q", concurrency: 1) do |message|
      message.wait(1)
      "#{message.payload} done"
    end
    worker.start
    assert_equal "x done", client.queue("q").push_and_wait("x", timeout: 20), log.string
    worker.stop
    # A machine that stands still for half a second may lose the lease, which is no fault of the connection.
    refute_match(/ERROR|WARN/, log.string.gsub(/^.* lost at attempt 1: lease$/, ""))
  ensure
    client&.close
  end

  def test_a_url_leads_to_a_database_with_a_user
    server = boot
    server.do("ACL", "SETUSER", "ann", "on", ">secret", "~*", "&*", "+@all")
    server.do("ACL", "SETUSER", "default", "off")
    assert_works("redis://ann:secret@127.0.0.1:#{server.port}/3")
    assert_works(URI("redis://ann:secret@127.0.0.1:#{server.port}"))
    assert_works({ host: "127.0.0.1", port: server.port, username: "ann", password: "secret", db: 3, protocol: 2 })
  end

  def test_a_unix_socket_works
    directory = temporary_directory
    boot("--unixsocket", path = "#{directory}/socket")
    assert_works("unix://#{path}")
    assert_works("unix://#{path}?db=2")
  end

  def test_tls_works_and_a_certificate_is_checked
    port = TestServer.free_port
    key, certificate = make_certificate
    server = boot("--tls-port", port.to_s, "--tls-cert-file", certificate, "--tls-key-file", key,
                  "--tls-auth-clients", "no", "--tls-ca-cert-file", certificate)
    server.do("ACL", "SETUSER", "default", ">secret")
    url = "rediss://:secret@localhost:#{port}"
    assert_works({ url: url, ssl_params: { ca_file: certificate } })
    error = assert_raises(DQ::ConnectionLost) { DQ::Client.new(url, push_timeout: 0).queue("q").push("x") }
    assert_includes error.message, "certificate verify failed"
  end

  def test_a_sentinel_leads_to_the_master_and_to_the_next_one
    master = boot
    replica = boot("--replicaof", "127.0.0.1 #{master.port}")
    sentinel = boot_sentinel(master)
    redis = { name: "jobs", sentinels: [{ host: "127.0.0.1", port: sentinel }] }
    assert_works(redis)
    client = DQ::Client.new(redis, push_timeout: 60)
    worker = DQ::Worker.new(client: client, logger: Logger.new(log = StringIO.new))
    worker.consume("q") { |message| "#{message.payload} done" }
    worker.start
    assert_equal "x done", client.queue("q").push_and_wait("x", timeout: 20), log.string
    fail_over
    Patience.until("the replica is the master") { replica.do("ROLE").first == "master" }
    Patience.until("the old master follows") { master.do("ROLE").first == "slave" }
    assert_equal "y done", client.queue("q").push_and_wait("y", timeout: 60), log.string
    worker.stop
  end

  # What a master that lives on after a failover accepts is lost.
  def test_a_master_that_sentinels_have_replaced_is_left
    master = boot
    replica = boot("--replicaof", "127.0.0.1 #{master.port}")
    sentinel = { host: "127.0.0.1", port: boot_sentinel(master) }
    client = DQ::Client.new({ name: "jobs", sentinels: [sentinel] })
    @closing << client.method(:close)
    client.queue("produced").push("x")
    worker = DQ::Worker.new(client: client, grace: 0.1, logger: Logger.new(log = StringIO.new))
    worker.consume("q") { nil }
    worker.start
    Patience.until("it is ready") { worker.ready? }
    master.do("ACL", "SETUSER", "default", "-slaveof", "-replicaof") # So that it stays a master.
    fail_over
    Patience.until("the replica is the master") { replica.do("ROLE").first == "master" }
    Patience.until("pushes arrive there") do
      client.queue("produced").push("y")
      replica.len("produced") > 1
    end
    replica.do("DQ.PUSH", "q", "z")
    Patience.until(-> { "the worker has moved: #{log.string}" }) do
      replica.info("q")["acked"] == 1
    end
    assert_equal "master", master.do("ROLE").first
    worker.stop
  end

  def test_what_is_not_understood_is_refused_by_its_name
    {
      "redis://localhost/one" => "one", "redis://localhost?size=1" => "size", "redis://localhost/1?db=2" => "db",
      "redis://localhost?protocol=x" => "protocol", " " => "empty", "redis://:a#b@localhost" => "#",
      "http://localhost" => "http",
      { nodes: nil } => "nodes", { nodes: "redis://localhost/one" } => "one",
      { url: "redis://localhost", tls: true } => "tls", { reconnect_attempts: 3 } => "reconnect_attempts"
    }.each do |redis, word|
      error = assert_raises(ArgumentError, redis.inspect) { DQ::Client.new(redis) }
      assert_includes error.message, word
    end
  end

  private

  # @return [Integer] the port of a Sentinel that knows the replica, too
  def boot_sentinel(master)
    port = TestServer.free_port
    configuration = "#{temporary_directory}/sentinel.conf"
    File.write(configuration, "port #{port}\nbind 127.0.0.1\nsentinel monitor jobs 127.0.0.1 #{master.port} 1\n" \
                              "sentinel down-after-milliseconds jobs 500\nsentinel failover-timeout jobs 2000\n")
    pid = Process.spawn(TestServer.printed("DQ_SERVER", "find-server.sh"), configuration, "--sentinel",
                        out: File::NULL)
    @closing << lambda do
      Process.kill(:KILL, pid)
      Process.wait(pid)
    end
    @sentinel = RedisClient.config(host: "127.0.0.1", port: port, reconnect_attempts: 100).new_client
    Patience.until("it knows the replica") { ask_sentinel("SENTINEL", "REPLICAS", "jobs")&.any? }
    port
  end

  def fail_over
    Patience.until("it fails over") { ask_sentinel("SENTINEL", "FAILOVER", "jobs") == "OK" }
  end

  def ask_sentinel(*words)
    @sentinel.call(*words)
  rescue RedisClient::Error
    sleep 0.1
    nil
  end

  # @return [Array<String>] the paths of a key and of its certificate
  def make_certificate
    directory = temporary_directory
    paths = ["#{directory}/key.pem", "#{directory}/cert.pem"]
    system("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
           "-keyout", paths.first, "-out", paths.last, err: File::NULL, exception: true)
    paths
  end
end
