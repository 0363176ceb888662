# frozen_string_literal: true

# An application of Rails that is made of the programs of the page of Active Job.
require_relative "support/home"
require_relative "support/pages"
require "rails/version"

class RailsTest < Minitest::Test
  ADAPTER, SERVER, REMINDER, PRODUCER, RESULT = Pages.blocks("docs/recipes/active-job.md", "ruby")
  COMMANDS = Pages.blocks("docs/recipes/active-job.md", "sh")

  def setup
    @server = TestServer.new.boot
    @directory = Dir.mktmpdir("dq-rails-app-", HOME)
    write_application
  end

  def teardown
    @worker&.kill
    @server.close
  end

  def test_the_application_of_the_page_works
    producer = run_program(PRODUCER.sub("DQ.cancel(job)", "DQ.reschedule(job, at: Time.now)"))
    assert_equal 0, producer.wait.exitstatus, producer.output
    start_worker
    @worker.wait_for("a reminder for customer 1001")
    calls = run_program(RESULT[/^job = .*/m])
    assert_equal 0, calls.wait.exitstatus, calls.output
    assert_includes calls.output, '{"sum":6}'
    assert_equal 0, @worker.stop, @worker.output
  end

  def test_a_job_can_be_cancelled_as_on_the_page
    producer = run_program(PRODUCER)
    assert_equal 0, producer.wait.exitstatus, producer.output
    assert_equal 0, @server.len("default")
  end

  def test_the_log_of_a_worker_is_that_of_rails
    producer = run_program('ReminderJob.perform_later(1001); DQ.queue("default").push("no job")')
    assert_equal 0, producer.wait.exitstatus, producer.output
    start_worker
    log = "#{@directory}/log/test.log"
    Patience.until(-> { "the error is in the log: #{@worker.output}" }) do
      File.exist?(log) && File.read(log).include?("the payload is no job of Active Job")
    end
    Patience.until("the job is in the log") { File.read(log).match?(/Performed ReminderJob.*from Dq\(default\)/) }
  end

  private

  # The program starts as dq-work does, with the words of the page.
  def start_worker
    words = COMMANDS.last.split.drop_while { |word| word != "dq-work" }.drop(1)
    @worker = TestProgram.new(TestProgram::WORKER, *words, directory: @directory, **environment)
  end

  def run_program(text)
    TestProgram.new("-e", "require './config/environment'\n#{text}", directory: @directory, **environment)
  end

  def environment
    { RAILS_ENV: "test", REDIS_URL: @server.url }
  end

  def write_application
    write("config/application.rb", <<~RUBY)
      require "rails"
      require "active_job/railtie"
      require "dq-client" # As Bundler.require does, with the Gemfile.
      module Shop
        class Application < Rails::Application
          config.load_defaults Rails.version.to_f
          config.eager_load = false
          #{ADAPTER}
        end
      end
    RUBY
    write("config/environment.rb", <<~RUBY)
      $stdout.sync = true
      require_relative "application"
      Rails.application.initialize!
    RUBY
    write("config/initializers/dq.rb", SERVER)
    write("app/jobs/application_job.rb", "class ApplicationJob < ActiveJob::Base\nend\n")
    write("app/jobs/reminder_job.rb", REMINDER)
    write("app/jobs/sum_job.rb", RESULT[/\Aclass .*?^end\n/m])
  end

  def write(name, text)
    FileUtils.mkdir_p(File.dirname("#{@directory}/#{name}"))
    File.write("#{@directory}/#{name}", text)
  end
end
