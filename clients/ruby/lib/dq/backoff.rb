# frozen_string_literal: true

module DQ
  # Growing, jittered pauses between attempts to reach the server.
  class Backoff
    FIRST_SECONDS = 0.05
    LONGEST_SECONDS = 1.0

    def initialize
      reset
    end

    # @return [Float] the next pause, in seconds
    def next
      pause = @pause
      @pause = [@pause * 2, LONGEST_SECONDS].min
      pause * rand(0.5..1.0)
    end

    # Starts again with the shortest pause, after an answer.
    def reset
      @pause = FIRST_SECONDS
    end
  end
end
