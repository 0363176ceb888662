# frozen_string_literal: true

# See lib/dq.rb.
module DQ
  # @return [Float] seconds of a clock that nobody sets, and that all processes of a machine share
  def self.now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end
