# frozen_string_literal: true

require "rbconfig"
require "tempfile"

# A program in Ruby that a test starts.
class TestProgram
  LIBRARY = File.expand_path("../../lib", __dir__)
  WORKER = File.expand_path("../../exe/dq-work", __dir__)

  attr_reader :pid

  # @param words [Array<String>] the arguments of Ruby
  def initialize(*words, directory: Dir.pwd, **environment)
    @output = Tempfile.new("dq-program")
    @pid = Process.spawn(environment.transform_keys(&:to_s), RbConfig.ruby, "-I", LIBRARY, *words,
                         chdir: directory, %i[out err] => @output.path)
  end

  # @return [String] what it has written
  def output = File.read(@output.path)

  def wait_for(text)
    Patience.until(-> { "#{text.inspect} in #{output}" }) do
      output.include?(text) || (ended? && flunk(text))
    end
  end

  def signal(name) = Process.kill(name, pid)

  # @return [Process::Status] how it ended
  def wait
    Patience.until(-> { "the end of #{pid}: #{output}" }) { ended? }
    @status
  end

  def ended?
    @status ||= Process.wait2(pid, Process::WNOHANG)&.last
    !@status.nil?
  end

  # @return [Integer] the exit code
  def stop
    signal(:TERM) unless ended?
    wait.exitstatus
  end

  def kill
    signal(:KILL) unless ended?
    wait
  end

  private

  def flunk(text) = raise(Minitest::Assertion, "it has ended without #{text.inspect}: #{output}")
end
