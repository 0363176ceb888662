# frozen_string_literal: true

require_relative "test_helper"

# A cluster of two nodes.
class ClusterTest < Minitest::Test
  SLOTS = 16_384

  def setup
    @nodes = Array.new(2) do
      TestServer.new("--cluster-enabled", "yes", "--cluster-port", TestServer.free_port.to_s).boot
    end
    first, second = @nodes
    first.do("CLUSTER", "ADDSLOTSRANGE", 0, (SLOTS / 2) - 1)
    second.do("CLUSTER", "ADDSLOTSRANGE", SLOTS / 2, SLOTS - 1)
    bus = second.do("CONFIG", "GET", "cluster-port")["cluster-port"]
    first.do("CLUSTER", "MEET", "127.0.0.1", second.port, bus)
    @nodes.each do |node|
      Patience.until("the cluster is up") do
        node.do("CLUSTER", "INFO").include?("cluster_state:ok")
      end
    end
    @client = DQ::Client.new({ nodes: [first.url], timeout: 5 })
  end

  def teardown
    @worker&.stop
    @client.close
    @nodes.each(&:close)
  end

  def work(*queues, **options, &block)
    @worker = DQ::Worker.new(client: @client, logger: Logger.new(@log = StringIO.new), grace: 0.1, **options)
    queues.each { |queue| @worker.consume(queue, concurrency: 2, &block) }
    @worker.start
  end

  def test_each_queue_is_found
    queues = Array.new(8) { |number| "queue-#{number}" }
    work(*queues, lease: 0.6) do |message|
      message.wait(1)
      "#{message.queue} done"
    end
    waiting = queues.map { |queue| Thread.new { @client.queue(queue).push_and_wait("x", timeout: 30) } }
    assert_equal queues.map { |queue| "#{queue} done" }, waiting.map(&:value), @log.string
    assert(@nodes.all? { |node| queues.any? { |queue| node.do("CLUSTER", "COUNTKEYSINSLOT", slot(queue)).positive? } })
    refute_match(/ERROR|WARN/, @log.string)
  end

  def test_a_node_that_is_gone_is_passed_over
    nodes = ["redis://127.0.0.1:#{TestServer.free_port}", *@nodes.map(&:url)]
    client = DQ::Client.new({ nodes: nodes })
    assert_equal 0, client.queue("queue").len
    gone = DQ::Client.new({ nodes: nodes.first(1) * 3 })
    assert_raises(DQ::ConnectionLost) { gone.queue("queue").len }
  ensure
    client&.close
  end

  def test_threads_that_meet_the_same_dead_node_pass_over_it_once
    nodes = ["redis://127.0.0.1:#{TestServer.free_port}", @nodes.first.url]
    20.times do
      client = DQ::Client.new({ nodes: nodes })
      lengths = Array.new(8) { Thread.new { client.queue("queue").len } }.map(&:value)
      assert_equal [0] * 8, lengths
    ensure
      client&.close
    end
  end

  def test_a_queue_that_moves_is_found_again
    work("moving") { |message| "#{message.payload} done" }
    assert_equal "x done", @client.queue("moving").push_and_wait("x", timeout: 30)
    @client.queue("moving").purge
    @client.queue("moving").purge(:done)
    place = @nodes.find { |node| node.do("CLUSTER", "MYID") == owner("moving") }
    place.do("DEL", "moving")
    other = (@nodes - [place]).first
    [other, place].each { |node| node.do("CLUSTER", "SETSLOT", slot("moving"), "NODE", other.do("CLUSTER", "MYID")) }
    assert_equal "y done", @client.queue("moving").push_and_wait("y", timeout: 30), @log.string
  end

  def test_a_queue_that_is_just_moved_is_used_at_its_new_node
    work("moving", lease: 0.6) do |message|
      message.wait(1) if message.payload == "slow"
      "#{message.payload} done"
    end
    @client.queue("moving").push("x", id: "held", delay: 600)
    from, to = @nodes.sort_by { |node| node.do("CLUSTER", "MYID") == owner("moving") ? 0 : 1 }
    to.do("CLUSTER", "SETSLOT", slot("moving"), "IMPORTING", from.do("CLUSTER", "MYID"))
    from.do("CLUSTER", "SETSLOT", slot("moving"), "MIGRATING", to.do("CLUSTER", "MYID"))
    from.do("MIGRATE", "127.0.0.1", to.port, "moving", 0, 30_000)
    assert_equal "slow done", @client.queue("moving").push_and_wait("slow", timeout: 30), @log.string
    assert_equal [nil], @client.queue("moving").push_many(["x"], ids: ["held"])
    [to, from].each { |node| node.do("CLUSTER", "SETSLOT", slot("moving"), "NODE", to.do("CLUSTER", "MYID")) }
    assert_equal "z done", @client.queue("moving").push_and_wait("z", timeout: 30), @log.string
    before = asked(to)
    10.times { |n| assert_equal "#{n} done", @client.queue("moving").push_and_wait(n.to_s, timeout: 30), @log.string }
    assert_equal before, asked(to)
    refute_match(/ERROR|WARN/, @log.string)
  end

  private

  # @return [String, nil] how often a node was sent ASKING
  def asked(node) = node.do("INFO", "commandstats")[/cmdstat_asking:calls=(\d+)/, 1]

  def slot(queue) = @nodes.first.do("CLUSTER", "KEYSLOT", queue)

  # @return [String] the id of the node that has the slot of a queue
  def owner(queue)
    slots = @nodes.first.do("CLUSTER", "SLOTS")
    slots.find { |first, last| slot(queue).between?(first, last) }[2][2]
  end
end
