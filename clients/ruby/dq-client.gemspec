# frozen_string_literal: true

require_relative "lib/dq/version"

Gem::Specification.new do |spec|
  spec.name = "dq-client"
  spec.version = DQ::VERSION
  spec.authors = ["The dq developers"]
  spec.summary = "Delayed jobs in Redis and Valkey with the module dq: client, worker, Active Job, Sidekiq"
  spec.license = "MIT"
  spec.required_ruby_version = ">= 3.1"
  spec.files = Dir["lib/**/*.rb", "exe/*", "README.md"]
  spec.bindir = "exe"
  spec.executables = ["dq-work"]
  spec.add_dependency "connection_pool", ">= 2.2"
  spec.add_dependency "redis-client", ">= 0.22"
  spec.metadata["rubygems_mfa_required"] = "true"
end
