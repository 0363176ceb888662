# frozen_string_literal: true

require "fiddle"
require_relative "test_helper"

class GuardTest < ServerTest
  # Sleeps so many seconds without giving the global lock away, as a C extension may.
  HOLD = Fiddle::Function.new(Fiddle.dlopen(nil)["sleep"], [Fiddle::TYPE_INT], Fiddle::TYPE_INT, need_gvl: true)

  PROGRAM = <<~RUBY
    require "dq"
    require "fiddle"
    hold = Fiddle::Function.new(Fiddle.dlopen(nil)["sleep"], [Fiddle::TYPE_INT], Fiddle::TYPE_INT, need_gvl: true)
    lease = ENV.fetch("LEASE", "1").to_f
    worker = DQ::Worker.new(client: DQ::Client.new(ENV["URL"]), lease: lease, keep: ENV["KEEP"])
    worker.consume("q") { |message| hold.call(message.payload.to_i) }
    exit worker.run
  RUBY

  def start(keep, seconds: "4", **environment)
    running = program(file("worker.rb", PROGRAM), URL: server.url, KEEP: keep, **environment)
    running.wait_for("works on")
    queue.push(seconds, retain: 60)
    running
  end

  def test_a_handler_that_holds_the_interpreter_for_three_leases_keeps_its_message
    running = start("process")
    counted("done", 1)
    assert_equal [1, 0], server.info("q").values_at("delivered", "lease-expired")
    assert_equal 0, running.stop
    refute_includes running.output, "lost"
  end

  # LOADING, BUSY and READONLY are such answers, too.
  def test_the_process_tries_again_after_an_error_of_the_server
    server.do("ACL", "SETUSER", "default", "-dq.mextend")
    start("process", seconds: "9", LEASE: "3")
    Patience.until("it is refused") { server.do("ACL", "LOG").any? { |entry| entry["object"] == "DQ.MEXTEND" } }
    server.do("ACL", "SETUSER", "default", "+dq.mextend")
    counted("done", 1)
    assert_equal [1, 0], server.info("q").values_at("delivered", "lease-expired")
  end

  def test_without_the_process_it_would_lose_its_message
    start("thread")
    Patience.until("its lease is over") { server.info("q")["lease-expired"].positive? }
  end

  def test_a_process_that_was_killed_is_replaced_and_holds_again
    worker = work(lease: 3, concurrency: 1) do |message|
      message.wait(1)
      HOLD.call(5)
      nil
    end
    first = worker.guard.pid
    queue.push("x", retain: 60)
    event(:started)
    Process.kill(:KILL, first)
    Patience.until("another one") { worker.guard.pid != first }
    counted("done", 1)
    assert_equal [1, 0], server.info("q").values_at("delivered", "lease-expired")
  end

  def test_it_ends_with_its_worker
    running = start("process")
    children = Patience.until("a child") do
      found = File.read("/proc/#{running.pid}/task/#{running.pid}/children").split.map(&:to_i)
      found unless found.empty?
    end
    running.kill
    Patience.until("no child") { children.none? { |pid| alive?(pid) } }
  end

  FORKING = <<~RUBY
    require "dq"
    worker = DQ::Worker.new(client: DQ::Client.new(ENV["URL"]), lease: 1)
    worker.consume("q") do
      $stdout.write("child \#{fork { sleep }}.")
      $stdout.flush
      sleep
    end
    exit worker.run
  RUBY

  def test_it_keeps_no_lease_of_a_dead_worker_whose_handler_has_forked
    running = program(file("worker.rb", FORKING), URL: server.url)
    running.wait_for("works on")
    queue.push("x")
    child = Patience.until("the child") { running.output[/child (\d+)\./, 1] }.to_i
    running.kill
    counted("lease-expired", 1)
  ensure
    Process.kill(:KILL, child) if child
  end

  def test_it_keeps_no_lease_beyond_the_time_limit
    # Only once: no thread of the test could see the first loss alone before a second one.
    work(lease: 1, time_limit: 1.5, concurrency: 1) { |message| HOLD.call(4) if message.attempt == 1 }
    queue.push("x")
    counted("lease-expired", 1)
  end

  # Something of the program that redis-client calls.
  module Seen
  end

  def test_it_needs_nothing_that_the_program_has_loaded
    work(redis: { url: server.url, driver: :ruby, middlewares: [Seen] }, lease: 1, concurrency: 1) do
      HOLD.call(3)
      nil
    end
    queue.push("x", retain: 60)
    counted("done", 1)
    assert_equal [1, 0], server.info("q").values_at("delivered", "lease-expired")
  end

  def test_options_that_no_process_can_have_leave_the_threads
    work(redis: { url: server.url, custom: { proc: -> {} } }) { nil }
    queue.push("x")
    counted("acked", 1)
    Patience.until("the log") { @log.string.include?("leases are kept by threads only") }
  end

  private

  def alive?(pid)
    !File.read("/proc/#{pid}/status").match?(/^State:\tZ/)
  rescue Errno::ENOENT, Errno::ESRCH
    false
  end
end
