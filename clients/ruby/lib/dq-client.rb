# frozen_string_literal: true

# Bundler loads the file that has the name of the gem.
require "dq"
