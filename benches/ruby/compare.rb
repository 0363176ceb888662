# frozen_string_literal: true

# Measures jobs of Ruby on dq beside Sidekiq and Active Job's :async, and prints a table:
#
#   $(scripts/fetch-languages.sh ruby-sid | cut -f 2) benches/ruby/compare.rb [SYSTEM ...]
#
# The systems are sidekiq (as it is), bridge (Sidekiq on dq), dq (Active Job on dq-work), and async (Active Job's own,
# in the process of the producer). Each is measured for
#
#   late: how much later than their time jobs begin, of 100 that are due within ten seconds
#   killed: what becomes of 60 jobs of 0.2 s if the process is killed after ten of them and another one begins
#   throughput: jobs that do nothing, 5,000 of them, with five threads in one process, from the first to the last
#
# DQ_SERVER and DQ_MODULE name the server and the module, as for the tests.
require "etc"
require "fileutils"
require "minitest"
%w[patience program server].each { |name| require_relative "../../clients/ruby/test/support/#{name}" }

# One system with a server of its own.
class Bench
  THREADS = 5
  LATE_JOBS = 100
  KILLED_JOBS = 60
  THROUGHPUT_JOBS = 5000
  # After so many seconds a job that has not begun is lost: five leases of the bridge and of dq.
  LOST_SECONDS = 25
  SIDEKIQ = File.expand_path("../../clients/ruby/test/frameworks/support/sidekiq_program.rb", __dir__)
  JOBS = File.expand_path("jobs.rb", __dir__)

  def initialize(system)
    @system = system
    @server = TestServer.new.boot
    @log = "#{@server.directory}/jobs"
  end

  # Measures everything and returns a row of the table.
  def row
    [@system, *late, *killed, throughput]
  ensure
    @worker&.kill
    @server.close
  end

  private

  def environment
    { BENCH_SYSTEM: @system, BENCH_URL: @server.url, BENCH_LOG: @log }
  end

  def start
    return if @system == "async"

    words = if @system == "dq"
              [TestProgram::WORKER, "default=#{THREADS}", "--lease", "5", "--require", JOBS]
            else
              [SIDEKIQ, "-r", JOBS, "-c", THREADS.to_s]
            end
    @worker = TestProgram.new(*words, **environment)
  end

  # Has a producer enqueue jobs. That of :async runs them as well, so it stays.
  def produce(text)
    @producer = TestProgram.new("-r", JOBS, "-e", @system == "async" ? "#{text}; sleep 60" : text, **environment)
    @producer.wait unless @system == "async"
  end

  def begun
    lines.filter_map { |number, at| [Integer(number), Integer(at)] unless at == "done" }
  end

  def done
    lines.filter_map { |number, at| Integer(number) if at == "done" }
  end

  def lines
    File.exist?(@log) ? File.readlines(@log).map(&:split) : []
  end

  def finish
    [@worker, @producer].compact.each(&:kill)
    FileUtils.rm_f(@log)
    @server.do("FLUSHALL") # What was killed before its ack would be done again.
  end

  # Times at odd milliseconds, spread over ten seconds that begin in three.
  def late
    start
    first = Time.now.to_f + 3
    due = Array.new(LATE_JOBS) { |number| first + (number * 0.0973) }
    produce(due.each_with_index.map { |at, number| "enqueue(#{number}, 0, #{at})" }.join(";"))
    Patience.until("all jobs are done", seconds: 90) { done.uniq.size == LATE_JOBS }
    all = begun.map { |number, at| at - (due[number] * 1000) }.sort
    finish
    ["#{all[all.size / 2].round} ms", "#{all.last.round} ms"]
  end

  def killed
    start
    produce("#{KILLED_JOBS}.times { |number| enqueue(number, 0.2) }")
    Patience.until("some jobs have begun", seconds: 90) { begun.size > 10 }
    (@worker || @producer).kill
    start
    last = Patience.now + LOST_SECONDS
    sleep 0.1 until done.uniq.size == KILLED_JOBS || Patience.now > last
    counts = [KILLED_JOBS - done.uniq.size, done.size - done.uniq.size]
    finish
    counts
  end

  def throughput
    produce("#{THROUGHPUT_JOBS}.times { |number| enqueue(number, 0) }")
    start
    Patience.until("all jobs are done", seconds: 180) { done.size == THROUGHPUT_JOBS }
    times = begun.map(&:last)
    finish
    "#{(THROUGHPUT_JOBS * 1000.0 / (times.max - times.min)).round(-2)}/s"
  end
end

$stdout.sync = true
systems = ARGV.empty? ? %w[sidekiq bridge async dq] : ARGV
server = TestServer.printed("DQ_SERVER", "find-server.sh")
puts "#{Etc.nprocessors} processors, Ruby #{RUBY_VERSION}, #{`#{server} --version`}"
%w[sidekiq activejob redis-client].each { |gem| puts "#{gem} #{Gem::Specification.find_by_name(gem).version}" }
puts "| system | late: median | most | killed: not run | done twice | throughput |", "| --- |#{" --- |" * 5}"
systems.each { |system| puts "| #{Bench.new(system).row.join(" | ")} |" }
