# frozen_string_literal: true

require "open3"
require_relative "test_helper"

class CommandLineTest < ServerTest
  APPLICATION = <<~RUBY
    DQ.redis = ENV.fetch("REDIS_URL")
    DQ.consume("mail") do |message|
      puts "mail: \#{message.payload} \#{DQ.stopping?}"
      $stdout.flush
      sleep if message.payload == "sleep"
    end
  RUBY

  def work(*words, text: APPLICATION, directory: Dir.pwd, **environment)
    words += ["--require", file("jobs.rb", text)] unless text.nil?
    program(TestProgram::WORKER, *words, directory: directory, REDIS_URL: server.url, **environment)
  end

  def test_it_works_on_the_queues_that_are_named
    worker = work("mail=2", "--lease", "20", "--grace", "1", "--name", "blue")
    worker.wait_for("(2 at a time)")
    queue("mail").push("hello")
    worker.wait_for("mail: hello false")
    queue("mail").push("sleep")
    worker.wait_for("mail: sleep")
    held = queue("mail").peek(:inflight).first
    assert_operator held["deadline"] - (Time.now.to_f * 1000), :<=, 20_000
    assert held["consumer"].end_with?(":#{worker.pid}:blue")
    assert_equal 0, worker.stop
    assert_includes worker.output, "1 messages went back"
    assert_equal 1, queue("mail").len(:ready)
  end

  def test_its_exit_code_tells_of_outcomes_that_the_server_has_not_accepted
    worker = work("mail=1", "--grace", "0")
    queue("mail").push("sleep")
    worker.wait_for("mail: sleep")
    server.kill
    assert_equal 1, worker.stop
    assert_includes worker.output, "could not report 1 messages"
  end

  def test_a_second_signal_ends_it_at_once
    worker = work("mail=1", "--grace", "60")
    queue("mail").push("sleep")
    worker.wait_for("mail: sleep")
    worker.signal(:TERM)
    # The second one is another signal only if the first one was handled.
    Patience.until("no further pop") { server.info("mail")["waiting-clients"].zero? }
    sleep 0.3
    refute_predicate worker, :ended?
    begun = DQ.now
    refute_equal 0, worker.stop
    assert_operator DQ.now - begun, :<, 10
  end

  def test_it_runs_from_a_checkout
    output, status = Open3.capture2e(RbConfig.ruby, TestProgram::WORKER, "--version")
    assert_predicate status, :success?, output
    assert_equal "dq-work #{DQ::VERSION}\n", output
  end

  def test_what_it_loads_can_hear_of_events_and_ask_for_health
    worker = work("mail", text: <<~RUBY + APPLICATION)
      DQ.hook = lambda do |event|
        puts "heard: \#{event.kind} \#{event.queue} \#{DQ.worker.healthy?}"
        $stdout.flush
      end
    RUBY
    worker.wait_for("works on mail")
    queue("mail").push("hello")
    worker.wait_for("heard: done mail true")
  end

  def test_it_loads_the_environment_of_rails_where_there_is_one
    environment = file("environment.rb", APPLICATION)
    config = File.join(File.dirname(environment), "config")
    FileUtils.mkdir(config)
    FileUtils.mv(environment, config)
    worker = work("mail", text: nil, directory: File.dirname(config))
    worker.wait_for("works on mail (8 at a time)")
    assert_equal 0, worker.stop
  end

  def test_a_wrong_command_line_is_refused
    {
      [] => "name a queue", %w[mail=0] => "mail=0", %w[mail=x] => "mail=x", %w[=3] => "=3",
      %w[mail=1 mail mail=2] => "twice",
      %w[other] => "nothing handles the queue other", %w[mail --lease x] => "--lease x",
      %w[mail --lease 0] => "lease", %w[mail --grace -1] => "grace", %w[mail --time-limit 0] => "time_limit",
      %w[mail --keep fork] => "--keep fork", %w[mail --fast] => "--fast", %w[mail --require none.rb] => "none.rb"
    }.each do |words, said|
      worker = work(*words)
      assert_equal 2, worker.wait.exitstatus, words.inspect
      assert_includes worker.output, said
    end
    worker = work("mail", text: nil, directory: server.directory)
    assert_equal 2, worker.wait.exitstatus
    assert_includes worker.output, "--require"
  end

  def test_an_application_that_cannot_be_loaded_is_an_error
    worker = work("mail", text: "require 'no_such_gem'")
    refute_equal 0, worker.wait.exitstatus
    assert_includes worker.output, "no_such_gem"
  end

  def test_it_reports_to_systemd_when_it_is_ready_and_that_it_is_not_stuck
    path = "#{server.directory}/notify"
    Socket.open(:UNIX, :DGRAM) do |socket|
      socket.bind(Socket.sockaddr_un(path))
      worker = work("mail", NOTIFY_SOCKET: path, WATCHDOG_USEC: "200000")
      assert_equal %w[READY=1 WATCHDOG=1 WATCHDOG=1], Array.new(3) { said(socket, worker) }
      worker.signal(:TERM)
      Patience.until("it tells that it stops") { said(socket, worker) == "STOPPING=1" }
      assert_equal 0, worker.wait.exitstatus
    end
  end

  private

  def said(socket, worker)
    assert socket.wait_readable(Patience::SECONDS), worker.output
    socket.recv(100)
  end
end
