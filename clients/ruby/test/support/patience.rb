# frozen_string_literal: true

# Waits for conditions, as no test depends on how fast a machine is.
module Patience
  SECONDS = 60 * ENV.fetch("DQ_PATIENCE", "1").to_f

  # @param what [String, Proc] what is waited for, or what describes the situation when it did not come
  # @return [Object] the value of the block, as soon as it is neither nil nor false
  def self.until(what, seconds: SECONDS)
    last = now + seconds
    loop do
      value = yield
      return value if value

      raise Minitest::Assertion, "not within #{seconds} s: #{what.is_a?(Proc) ? what.call : what}" if now > last

      sleep 0.01
    end
  end

  def self.now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end
