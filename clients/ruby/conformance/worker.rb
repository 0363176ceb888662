# frozen_string_literal: true

# The worker that the conformance suite drives: what each message asks for is in its payload.
$LOAD_PATH.unshift(File.expand_path("../lib", __dir__))
require "dq"
require "optparse"
require_relative "lines"

OUTPUT = Mutex.new
HOOK = ENV.fetch("DQ_HOOK", nil)
ENDS = { done: "ok", failed: "fail", rejected: "reject", retried: "retry" }.freeze
# A value that JSON cannot say.
NO_RESULT = [Float::NAN].freeze

def say(event, **fields)
  OUTPUT.synchronize do
    $stdout.write("#{Lines.generate({ event: event, **fields })}\n")
    $stdout.flush
  end
end

def now = (Time.now.to_r * 1000).floor

# Tells what the worker decides by itself, and how handlers end. Then it may do what a hook should not.
def heard(event)
  tell(event)
  raise "the hook fails" if HOOK == "fail"

  sleep(3) if HOOK == "block" && event.kind == :failed
end

def tell(event)
  if event.kind == :ready
    say("ready")
  elsif event.kind == :lost || (event.kind == :returned && event.text == "stopping")
    say("lost", id: event.id, reason: event.text, at: now)
  elsif ENDS.key?(event.kind)
    say("end", id: event.id, how: ENDS[event.kind], at: now)
  end
end

# Does what the payload says.
def handle(message)
  say("start", queue: message.queue, id: message.id, attempt: message.attempt, headers: message.headers,
               checkpoint: message.checkpoint, at: now)
  work(message, message.json)
ensure
  say("end", id: message.id, how: "lost", at: now) if message.lost? && message.reason != "time limit"
end

def work(message, wanted)
  text = wanted["text"].to_s
  seconds = (wanted["ms"] || 0) / 1000.0
  case wanted["do"]
  when "ok" then nil
  when "fail" then fail_at(message, wanted)
  when "save"
    save(message, text, seconds)
    fail_at(message, wanted)
  when "reject" then raise DQ::Reject, text
  when "retry" then raise DQ::Retry.new(text, after: after(wanted["after"]))
  when "exit" then exit!(3)
  when "hang" then message.wait(seconds)
  when "spin" then spin(seconds)
  when "result" then return wanted["result"]
  when "no-result" then return NO_RESULT
  else raise "unknown task #{wanted["do"].inspect}"
  end
  nil
end

def fail_at(message, wanted)
  raise wanted["text"].to_s if message.attempt <= (wanted["times"] || message.attempt)
end

def save(message, text, seconds)
  message.wait(seconds)
  message.save(text)
  message.wait(seconds)
end

def after(wanted)
  return Float::NAN if wanted == "NaN"
  return Float::INFINITY if wanted == "Infinity"

  wanted.is_a?(Numeric) ? wanted / 1000.0 : wanted
end

def spin(seconds)
  last = DQ.now + seconds
  nil while DQ.now < last
end

# A queue that is worked on as the README recommends.
def handle_task(message)
  wanted = message.json
  raise DQ::BadPayload, "the payload is no JSON object" unless wanted.is_a?(Hash)

  case wanted["task"]
  when "known" then work(message, wanted)
  else raise "unknown task #{wanted["task"].inspect}"
  end
end

queues = {}
url = nil
options = { hook: method(:heard) }
OptionParser.new do |parser|
  parser.on("--url URL") { |given| url = given }
  parser.on("--queue NAME") do |given|
    name, _, concurrency = given.rpartition("=")
    queues[name.empty? ? given : name] = name.empty? ? DQ::Worker::CONCURRENCY : Integer(concurrency)
  end
  parser.on("--lease MS", Integer) { |given| options[:lease] = given / 1000.0 }
  parser.on("--grace MS", Integer) { |given| options[:grace] = given / 1000.0 }
  parser.on("--name NAME") { |given| options[:name] = given }
  parser.on("--time-limit MS", Integer) { |given| options[:time_limit] = given / 1000.0 }
end.parse!
worker = DQ::Worker.new(client: DQ::Client.new(url), **options)
queues.each do |name, concurrency|
  worker.consume(name, concurrency: concurrency, &method(name == "tasks" ? :handle_task : :handle))
end
code = worker.run
say("stopped")
exit!(code)
