# frozen_string_literal: true

# Calls each method of a queue with all its options, for the conformance suite, which looks at what the server gets.
$LOAD_PATH.unshift(File.expand_path("../lib", __dir__))
require "dq"

queue = DQ::Client.new(ARGV.fetch(1)).queue("q")
soon = Time.now + 3600
common = { priority: 1, retries: 1, lease: 5, group: "g", headers: { "h" => "1" } }
each = { **common, ttl: 5000, replace: true, later: true, max_wait: 5, retain: 5, batch: "b" }
queue.push("x", id: "m", at: soon, **each)
queue.push("x", id: "m", delay: 5, **each)
queue.push_many(["x"], ids: ["n"], at: soon, **each)
queue.push_many(["x"], ids: ["n"], delay: 5, **each)
past = { attempt: 2, error: "e", checkpoint: "c", dead: true, reason: "retries" }
queue.push("x", **past)
queue.push_many(["x"], **past)
begin
  queue.push_and_wait("x", timeout: 0.001)
rescue DQ::WaitTimeout
  nil
end
queue.schedule("s", "x", every: 60, offset: 1, at: soon, until: soon, times: 2, ttl: 5, **common)
queue.schedule("s", "x", cron: "@daily", tz: "UTC")
queue.follow("b", "x", id: "f", delay: 5, **common)
queue.batch_info("b")
queue.cancel_batch("b")
queue.cancel("m")
queue.reschedule("n", at: soon, priority: 1)
queue.reschedule("n", delay: 5)
queue.promote(1, until: soon)
queue.redrive(1, delay: 5, older: 0, reason: "expired")
queue.redrive(ids: ["m"])
queue.get("m")
queue.peek("ready", 1, group: "g")
queue.len("ready", group: "g")
queue.info
%i[in out all].each do |flow|
  queue.pause(5, flow: flow)
  queue.resume(flow: flow)
end
queue.pause(5, group: "g")
queue.resume(group: "g")
settings = {
  lease: 5, max_lease: 60, delay: 1, retries: 1, backoff: [1, 60], jitter: 10, ttl: 60, max_len: 5, max_inflight: 5,
  rate: [5, 1], dead_len: 5, dead_ttl: 60, retain: 5, done_len: 5, max_payload: 100, group_inflight: 2,
  group_rate: [5, 1], errors: 2, group_order: "turn", dedupe: 5,
  forward: "STREAM due TRIM 9", dead_forward: "QUEUE dead"
}
queue.declare(**settings)
queue.create(**settings)
queue.alter(**settings)
queue.purge("ready", count: 1, group: "g", recurring: true, older: 0)
