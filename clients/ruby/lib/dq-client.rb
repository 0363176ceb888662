# frozen_string_literal: true

# The name of the gem, which Bundler requires. dq-work has required "dq" before Rails was there.
require "dq"
require "dq/railtie" if defined?(Rails::Railtie)
