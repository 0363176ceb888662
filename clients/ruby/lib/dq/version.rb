# frozen_string_literal: true

module DQ
  # The version of the gem.
  VERSION = "0.2.0"
end
