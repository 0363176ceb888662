# frozen_string_literal: true

require_relative "test_helper"

# The programs of the README, as they stand.
class ReadmeTest < ServerTest
  README = File.read(File.expand_path("../README.md", __dir__))
  PACKAGE = File.expand_path("..", __dir__)

  def self.blocks(language) = README.scan(/^```#{language}\n(.*?)^```/m).flatten

  JOBS, SHOP, RESULTS, WORKER, = blocks("ruby")
  INSTALL, RUN = blocks("sh")
  UNIT, = blocks("ini")

  def run_program(text, **options) = program(file("program.rb", text), REDIS_URL: server.url, **options)

  # Runs a command line of dq-work in a directory that has jobs.rb.
  def run_worker(words, url: server.url)
    directory = File.dirname(file("jobs.rb", JOBS))
    program(TestProgram::WORKER, *words, directory: directory, REDIS_URL: url)
  end

  def test_the_five_minutes_work
    worker = run_worker(RUN.split.drop(1))
    shop = run_program(SHOP)
    assert_predicate shop.wait, :success?, shop.output
    %w[ann ben cid].each { |name| worker.wait_for("mail to #{name}@example.org") }
    worker.signal(:INT)
    assert_equal 0, worker.wait.exitstatus
    counted("acked", 3, "mail")
  end

  def test_the_worker_and_the_results_work
    worker = run_program(WORKER)
    results = run_program(RESULTS)
    assert_predicate results.wait, :success?, results.output
    assert_equal "6\n9\nrejected: nothing to add\n", results.output
    assert_equal 0, worker.stop
    assert_includes worker.output, "2 sums"
  end

  def test_the_gem_is_built_and_installed
    home = File.dirname(file("none", ""))
    FileUtils.cp_r(PACKAGE, "#{home}/ruby")
    INSTALL.lines.grep(/^gem/).each do |line|
      words = [*line.split.drop(1), *(["--local", "--no-document"] if line.include?("install"))]
      gem = program("-r", "rubygems/gem_runner", "-e", "Gem::GemRunner.new.run(ARGV.dup)", "--", *words,
                    directory: "#{home}/ruby", GEM_HOME: "#{home}/gems")
      assert_predicate gem.wait, :success?, gem.output
    end
    assert_path_exists "#{home}/gems/bin/dq-work"
    installed = Dir["#{home}/gems/gems/dq-client-*/**/*"].map { |path| File.basename(path) }
    assert_empty %w[guard_process.rb command_line.rb dq-work README.md] - installed
    loaded = program("-r", "dq-client", "-e", "puts DQ::VERSION", GEM_HOME: "#{home}/gems")
    assert_predicate loaded.wait, :success?, loaded.output
  end

  def test_the_unit_starts_a_worker_that_its_supervisor_can_watch
    words = UNIT[/^ExecStart=\S+ (.*)$/, 1].split
    assert_operator UNIT[/^TimeoutStopSec=(\d+)/, 1].to_i, :>, words[words.index("--grace") + 1].to_i
    worker = run_worker(words - ["sums=2"])
    worker.wait_for("works on mail (8 at a time)")
    assert_equal 0, worker.stop
  end

  def test_the_rights_of_the_page_are_enough
    server.do(*README[/^ACL SETUSER .*$/].split)
    worker = run_worker(%w[mail --require ./jobs.rb], url: server.url.sub("//", "//worker:secret@"))
    queue("mail").push('{"to": "nobody"}', id: "m")
    Patience.until("it is dead") { server.message("mail", "m")["state"] == "dead" }
    assert_equal 0, worker.stop
    refute_includes worker.output, "NOPERM"
  end

  def test_the_page_has_every_option_of_the_program_and_of_a_push
    help = program(TestProgram::WORKER, "--help").tap(&:wait).output
    help.scan(/--[a-z-]+/).each { |option| assert_includes README, option }
    [*DQ::Words::PUSH, *DQ::Words::SCHEDULE].each { |option| assert_includes README, "#{option}:" }
  end
end
