# frozen_string_literal: true

require_relative "home"

# A test of jobs that this process enqueues, and that a worker runs: a process of its own for dq.
class ActiveJobCase < Minitest::Test
  ADAPTER = ENV["DQ_TEST_ADAPTER"] ||= "dq"

  if ADAPTER == "dq"
    SERVER = TestServer.new.boot
    ENV["DQ_TEST_URL"] = SERVER.url
    WORKER = start_dq_work("#{FRAMEWORKS}/apps/jobs.rb", "default=2", "mail=1", "mailers=1")
    Minitest.after_run do
      WORKER.kill
      SERVER.close
    end
  end
  require_relative "../apps/jobs"

  # What the job of this test recorded, once it has recorded so much.
  def recorded(count)
    Patience.until(-> { "#{count} records of #{name}: #{Record.of(name)}; #{self.class.worker_log}" }) do
      Record.of(name).size >= count
    end
    Record.of(name)
  end

  def milliseconds
    (Time.now.to_f * 1000).floor
  end

  def self.worker_log
    WORKER.output if ADAPTER == "dq"
  end
end
