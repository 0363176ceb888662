# frozen_string_literal: true

# The producer that the conformance suite drives: a push for each line of standard input.
$LOAD_PATH.unshift(File.expand_path("../lib", __dir__))
require "dq"
require_relative "lines"

client = DQ::Client.new(ARGV.fetch(1))
$stdout.sync = true
$stdin.each_line do |line|
  given = Lines.parse(line).compact
  options = given.except("queue", "payload").transform_keys(&:to_sym)
  options[:delay] /= 1000r if options[:delay]
  id = client.queue(given["queue"]).push(given["payload"], **options)
  puts Lines.generate("id" => id)
rescue DQ::Error => error
  puts Lines.generate("error" => error.class.name.split("::").last)
end
