# frozen_string_literal: true

# An application of Sidekiq that is made of the programs of its page.
require_relative "support/pages"
require_relative "support/sidekiq_case"

class SidekiqPageTest < SidekiqCase
  INSTALL, WORKER, CANCEL, FORWARD = Pages.blocks("docs/recipes/sidekiq.md", "ruby")
  DECLARE = Pages.blocks("docs/recipes/sidekiq.md", "console").first[/DQ\.ALTER .*/].split

  def setup
    @server = TestServer.new.boot
    @application = "#{HOME}/#{name}.rb"
    classes, @push = WORKER.split(/^end\n\K/)
    File.write(@application, <<~RUBY)
      require "sidekiq"
      Sidekiq.configure_client { |config| config.redis = { url: "#{@server.url}" } }
      Sidekiq.configure_server { |config| config.redis = { url: "#{@server.url}" } }
      $stdout.sync = true
      #{INSTALL.sub("redis://localhost:6379", @server.url) unless name.include?("forward")}
      #{classes}
    RUBY
  end

  def teardown
    @process&.kill
    @server.close
  end

  def test_the_application_of_the_page_works
    run_program(@push.sub("15 * 60", "0.5"))
    start
    @process.wait_for("order 1001 has not been paid")
    run_program(CANCEL)
    assert_equal 0, @server.len("sidekiq:default")
    assert_equal 0, @process.stop
  end

  def test_jobs_that_a_queue_forwards_run
    @server.do(*DECLARE)
    run_program(FORWARD)
    assert_equal 0, @server.len("sidekiq:later"), "it is cancelled"
    run_program(FORWARD.sub("15 * 60 * 1000", "100").sub(/^.*DQ.CANCEL.*$/, ""))
    start
    @process.wait_for("order 1001 has not been paid")
  end

  private

  def run_program(text)
    program = TestProgram.new("-r", @application, "-e", text)
    assert_equal 0, program.wait.exitstatus, program.output
  end

  def start
    @process = TestProgram.new("#{FRAMEWORKS}/support/sidekiq_program.rb", "-r", @application)
  end
end
