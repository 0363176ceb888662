# frozen_string_literal: true

# The program `sidekiq`, as its package has it.
load Gem.bin_path("sidekiq", "sidekiq")
