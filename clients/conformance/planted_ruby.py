"""The faults of the Ruby client that the suite has to notice; planted.py plants them."""

# What keeps leases if no thread of the worker does would hide that no thread does.
NO_GUARD = ("lib/dq/worker/guard.rb", "SHARE = 0.7", "SHARE = 70")
TOO_LATE = "now + ([left, seconds].min * 2)"
AS_BY_DEFAULT = "begun + ([left, 30.0].max / 4)"
HOLDS_THE_LOCK = "lane.lock.synchronize { lane.handler.call(message) }"
EXTRA = {TOO_LATE: NO_GUARD, AS_BY_DEFAULT: NO_GUARD, HOLDS_THE_LOCK: NO_GUARD}

FETCHER, REPORTER = "lib/dq/worker/fetcher.rb", "lib/dq/worker/reporter.rb"
LANE, LEASES, OUTCOME = "lib/dq/worker/lane.rb", "lib/dq/worker/leases.rb", "lib/dq/worker/outcome.rb"

# What is broken, where, how, and the tests that are to notice it.
FAULTS = [
    ("1 pops more than it can work on", FETCHER, '"COUNT", @asked', '"COUNT", @asked + 1', "test_1"),
    ("1 works on few by default", "lib/dq/worker.rb", "CONCURRENCY = 8", "CONCURRENCY = 1", "test_1"),
    (
        "1 works on one message after the other",
        "lib/dq/worker/handlers.rb",
        "  start_thread(lane, delivery)\n",
        "  start_thread(lane, delivery).join\n",
        "test_1",
    ),
    ("2 extends leases too late", LEASES, "now + ([left, seconds].min / 2)", TOO_LATE, "test_2"),
    (
        "2 begins to extend when the default lease would need it",
        "lib/dq/worker/delivery.rb",
        "begun + ([left, lease].min / 2)",
        AS_BY_DEFAULT,
        "test_2",
    ),
    (
        "2 lets a handler block what extends",
        "lib/dq/worker/handlers.rb",
        "lane.handler.call(message)",
        HOLDS_THE_LOCK,
        "test_2",
    ),
    (
        "2 does not hear of losses",
        "lib/dq/worker/listener.rb",
        "lane.noticed(reason.force_encoding(Encoding::UTF_8), receipt)",
        "nil",
        "test_2",
    ),
    ("2 does not watch its own clock", "lib/dq/worker/clock.rb", 'lane.take(delivery, "lease")', "nil", "test_2"),
    ("3 retries what is rejected", OUTCOME, '["DEAD", "ERROR"', '["ERROR"', "test_3"),
    (
        "3 asks for a retry after no time",
        OUTCOME,
        "if milliseconds.between?(0, Words::LONGEST_MS)",
        "if true",
        "test_3",
    ),
    ("3 fails for a long result", OUTCOME, "if stored.bytesize <= RESULT_BYTES", "if true", "test_3"),
    (
        "3 fails for a result that is no JSON",
        OUTCOME,
        "rescue StandardError, SystemStackError",
        "rescue ZeroDivisionError",
        "test_3",
    ),
    ("3 stores texts as JSON", OUTCOME, "when String then result", "when String then JSON.generate(result)", "test_3"),
    ("3 never acks with the next pop", LANE, "outcome.equal?(Outcome::ACK) && @collecting", "false", "test_3"),
    ("3 rejects what it cannot decode", OUTCOME, "when Reject\n", "when Reject, BadPayload\n", "test_3"),
    ("3 does not log that a message is dead", "lib/dq/worker.rb", '"; now dead"', '""', "test_3"),
    ("4 counts what it gives back", OUTCOME, '["NOCOUNT"].freeze', "[].freeze", "test_4"),
    ("4 does not end its pops", FETCHER, "thread.join(0.02)", "thread.join(9)", "test_4"),
    ("4 unblocks pops that are put off", FETCHER, '["MULTI"], ["DQ.ACK", @lane.name, "#"], ', "", "test_4"),
    ("5 does not pop after an error", FETCHER, "            failed(error)\n", "            return\n", "test_5"),
    (
        "5 drops outcomes that were refused",
        REPORTER,
        "return false if reply.is_a?(Refused) && passes?(reply)",
        "return true if reply.is_a?(Refused) && passes?(reply)",
        "test_5",
    ),
    ("6 repeats pushes for a minute", "lib/dq/client.rb", "PUSH_SECONDS = 10.0", "PUSH_SECONDS = 60.0", "test_6"),
    ("6 does not repeat pushes", "lib/dq/client.rb", "raise unless may_succeed_later?(error)", "raise", "test_6"),
    (
        "6 repeats pushes under new ids",
        "lib/dq/queue.rb",
        "options = { **options, id: SecureRandom.uuid } if made\n",
        "\n",
        "test_6",
    ),
    ("7 loses headers", "lib/dq/message.rb", '@meta["headers"] || {}', "{}", "test_7"),
    ("8 does not miss the module", "lib/dq/link.rb", "the server has not loaded the module dq", "no", "test_8"),
    ("8 pops without a name", FETCHER, ', "AS", @worker.consumer]', "]", "test_8"),
    (
        "9 needs HELLO",
        FETCHER,
        "rescue Refused => error\n        raise if error.later?\n\n        begin",
        "rescue ZeroDivisionError => error\n        raise if error.later?\n\n        begin",
        "test_9",
    ),
    (
        "9 takes ids for valid UTF-8",
        "lib/dq/message.rb",
        "      @kind = kind\n",
        "      @id = @id.dup.force_encoding(Encoding::UTF_8).scrub\n      @kind = kind\n",
        "test_9",
    ),
    # The rules that all clients share, as docs/clients.md has them.
    (
        "an attempt that was not sent counts",
        "lib/dq/link.rb",
        "raise ConnectionLost.new(error.message, may_have_run: false)",
        "raise ConnectionLost, error.message",
        "test_6 were_not_sent",
    ),
    (
        "a push that cannot be made now fails",
        "lib/dq/errors.rb",
        "message.match?(NOT_NOW) || ",
        "",
        "test_6 cannot_make_now",
    ),
    (
        "a push whose reply was cut fails",
        "lib/dq/client.rb",
        "error.is_a?(ConnectionLost) || error.later?",
        "(error.is_a?(ConnectionLost) && !error.may_have_run?) || error.later?",
        "test_6 reply_was_cut",
    ),
    (
        "an outcome that meets another password is dropped",
        REPORTER,
        "            send_again(batch)\n",
        "            batch.reports.each { |delivery, _| @lane.answered(delivery) } if error.is_a?(Refused)\n"
        "            send_again(batch) unless error.is_a?(Refused)\n",
        "test_5 outcome_waits",
    ),
    ("an outcome that meets BUSY is dropped", "lib/dq/errors.rb", "(?:BUSY|", "(?:", "test_5 outcome_waits"),
    (
        "a checkpoint that cannot be kept now is dropped",
        REPORTER,
        "passes?(reply) ? again[receipt] = value : refused(",
        "refused(",
        "test_5 checkpoint_waits",
    ),
    (
        "a failure leaves behind the checkpoint that is not stored",
        REPORTER,
        '[*words, "CHECKPOINT", checkpoint]',
        "words",
        "test_5 takes_a_checkpoint",
    ),
    (
        "hooks are called where leases are kept",
        "lib/dq/worker.rb",
        "@announcer.announce { hook.call(event) }",
        "hook.call(event)",
        "test_8 hooks_that",
    ),
    (
        "an outcome that is late is not reported",
        "lib/dq/worker/clock.rb",
        "lane.late(delivery) : note",
        "nil : note",
        "test_5 is_late",
    ),
    (
        "a lease begins when the reply arrives",
        LEASES,
        "left = @server_time.left(deadline, now)\n        return",
        "left = seconds\n        return",
        "test_2 pop_was_late",
    ),
    (
        "clocks may differ by much",
        "lib/dq/worker/server_time.rb",
        "left - (left.abs * DRIFT)",
        "left + (left.abs * 0.01)",
        "test_2 longest_lease_is_over",
    ),
    (
        "pops ask for the lease of the queue",
        LEASES,
        "@server_time.known? ? [] : [",
        "false ? [] : [",
        "test_2 lease_of_a_message",
    ),
    ("a stop waits for a dead connection", FETCHER, "DQ.now - asked < END_SECONDS", "true", "test_4 are_dead"),
    ("as many are asked for after a lost reply", FETCHER, "@most = @asked / 2", "@most = @asked", "test_5 too_large"),
    (
        "connections that were closed are used",
        "lib/dq/link.rb",
        "if DQ.now - @used > IDLE_SECONDS && @redis.connected?",
        "if false",
        "test_6 closed_while_idle",
    ),
    (
        "errors are cut within a character",
        "lib/dq/texts.rb",
        'text.byteslice(0, most).scrub("")',
        "text.byteslice(0, most)",
        "test_3 end_with_a_character",
    ),
    (
        "errors show payloads",
        "lib/dq/message.rb",
        "the payload of #{@payload.bytesize} bytes is not JSON",
        "the payload #{@payload} is not JSON",
        "test_3 of_the_payload",
    ),
]
