# frozen_string_literal: true

# Bundler loads the file that has the name of the gem. dq-work has loaded "dq" before Rails was there.
require "dq"
require "dq/railtie" if defined?(Rails::Railtie)
