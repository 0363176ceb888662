# frozen_string_literal: true

require_relative "test_helper"
require_relative "support/sentinel"

# A failover by Sentinels whose old master lives on. What that accepts is lost.
class SentinelsTest < Minitest::Test
  def setup
    @old, @new = @servers = Array.new(2) { TestServer.new.boot }
    @sentinel = TestSentinel.new(@old.port)
    @client = DQ::Client.new(@sentinel.options)
    @links = Array.new(2) { @client.settings.link("q") }
  end

  def teardown
    @worker&.stop
    @links.each(&:close)
    @client.close
    @sentinel.close
    @servers.each(&:close)
  end

  # A Sentinel names the new master from when it is promoted, and announces it when the replicas follow it.
  def test_a_pop_is_ended_though_another_connection_found_the_new_master_before_it_was_announced
    pop = wait_in_a_pop
    link = @links.last
    assert_equal @old.port, port_of(link)
    @sentinel.master = @new.port
    @old.do("CLIENT", "KILL", "ID", link.call("CLIENT", "ID"))
    Patience.until("a connection leads to the new master") { leads_to_new?(link) }
    @sentinel.announce(@old.port, @new.port)
    assert_leaves(pop)
  end

  def test_a_pop_is_ended_though_the_switch_was_announced_while_nobody_listened
    pop = wait_in_a_pop
    @sentinel.drop
    @sentinel.master = @new.port
    assert_leaves(pop)
  end

  # The Sentinel that is asked next may not have heard yet of the master that another one has announced.
  def test_a_pop_is_ended_though_the_old_master_was_found_once_more_after_the_announcement
    pop = wait_in_a_pop
    @sentinel.announce(@old.port, @new.port)
    assert_equal :lost, pop.value
    pop = wait_in_a_pop
    @sentinel.master = @new.port
    @sentinel.announce(@old.port, @new.port)
    assert_leaves(pop)
  end

  # Without the notice the handler would learn it after 300 s, at half time of its lease.
  def test_a_cancel_on_the_new_master_is_noticed_at_once
    worker = DQ::Worker.new(client: @client, lease: 600, keep: :thread, grace: 0.1, logger: Logger.new(IO::NULL))
    seen = Thread::Queue.new
    worker.consume("q") { |message| wait_until_lost(message, seen) }
    (@worker = worker).start
    Patience.until("it listens for notices") { listens?(@old) }
    @sentinel.master = @new.port
    @sentinel.announce(@old.port, @new.port)
    id = @new.do("DQ.PUSH", "q", "x")
    assert_equal id, taken(seen)
    Patience.until("it listens for notices at the new master") { listens?(@new) }
    @new.do("DQ.CANCEL", "q", id)
    assert_equal :lost, taken(seen)
    refute listens?(@old)
  end

  private

  def wait_until_lost(message, seen)
    seen << message.id
    message.wait(600)
  rescue DQ::Lost
    seen << :lost
    raise
  end

  def taken(seen) = Patience.until("the handler goes on") { seen.pop(true) unless seen.empty? }

  def listens?(server) = server.do("PUBSUB", "NUMSUB", "__dq@0__:q").to_a.flatten.last == 1

  # @return [Thread] that waits in a pop at the old master; its value is :lost if the connection ends
  def wait_in_a_pop
    Patience.until("it listens") { link_listens? }
    pop = Thread.new do
      @links.first.call("DQ.POP", "q", "BLOCK", 600_000, seconds: 600)
    rescue DQ::ConnectionLost
      :lost
    end
    Patience.until("the pop waits") { @old.do("INFO", "clients").include?("blocked_clients:1") }
    pop
  end

  # Whether the client has subscribed at the Sentinel, and has a connection to the master.
  def link_listens? = port_of(@links.first) == @old.port && @sentinel.subscribers == 1

  def assert_leaves(pop)
    Patience.until("the pop ends") { !pop.alive? }
    assert_equal :lost, pop.value
    assert leads_to_new?(@links.first)
  end

  def port_of(link) = Integer(Hash[*link.call("CONFIG", "GET", "port")]["port"])

  def leads_to_new?(link)
    port_of(link) == @new.port
  rescue DQ::ConnectionLost
    false
  end
end
