# frozen_string_literal: true

require "fileutils"
require_relative "home"

# A test with a server of its own, and with workers that it starts and ends.
class DqCase < Minitest::Test
  attr_reader :server

  def setup
    @server = TestServer.new.boot
    @programs = []
    ENV["DQ_TEST_URL"] = server.url
    require_relative "../apps/dq_jobs"
    DQ.redis = { url: server.url }
  end

  def teardown
    @programs.each(&:kill)
    server.close
    FileUtils.rm_f("#{Record.path}.calm")
  end

  # Starts a worker.
  #
  # @param words [Array<String>] queues or options of dq-work
  def start(*words, queues: ["default=2"])
    words = [*queues, *words] unless words.first&.include?("=")
    start_dq_work("#{FRAMEWORKS}/apps/dq_jobs.rb", *words).tap { |program| @programs << program }
  end

  # Has a worker while a block runs, and stops it then.
  #
  # @return [Object] what the block returns
  def work(*words)
    worker = start(*words)
    yield(worker).tap { assert_equal 0, worker.stop, worker.output }
  end

  # What the job of this test recorded, once it has recorded so much.
  def recorded(count)
    Patience.until(-> { "#{count} records of #{name}: #{Record.of(name)}; #{@programs.map(&:output).join}" }) do
      Record.of(name).size >= count
    end
    Record.of(name)
  end

  def until_done(queue = "default")
    Patience.until("nothing is left in #{queue}") { server.len(queue).zero? }
  end

  def milliseconds
    (Time.now.to_f * 1000).floor
  end

  def import_from_sidekiq(name, queue)
    dqctl = ENV.fetch("DQCTL") { skip "DQCTL does not name dqctl" }
    command = [dqctl, "--url", server.url, "import", "sidekiq", name, queue, "--move"]
    output = IO.popen(command, err: %i[child out], &:read)
    assert_predicate $CHILD_STATUS, :success?, output
  end
end
