#!/usr/bin/env bash
# A consumer with redis-cli: consumer.sh [port]. It works on one message at a time: run several for more.
# Replace close_order with your own work. To give it something to do: redis-cli DQ.PUSH orders:close "order 1001"
# Payloads must be single lines. Under systemd set KillMode=mixed, so that a stop reaches this script alone.
set -euo pipefail
set -m # each background job is a process group: Ctrl-C does not reach it, and `kill -- -PID` ends all of it

port=${1:-6379}
queue=orders:close
lease=30 # seconds: if this script dies, its message is delivered again after this time
block=5  # seconds

# Does the work. SIGTERM ends it if the lease is lost, because another consumer may have the message then.
close_order() {
    echo "closing $1"
    sleep 1 # stands for work that takes a second
}

# A signal does not reach redis-cli, so each command gets its reply. -e: an error reply is a failure.
dq() (
    trap '' INT TERM
    exec redis-cli -e -p "$port" "$@"
)

# Waits for one message, and writes its own number, that of the client, and then the message to the file $reply.
pop() {
    { echo "$BASHPID" && dq <<<"CLIENT ID"$'\n'"DQ.POP $queue LEASE ${lease}000 BLOCK ${block}000"; } >"$reply"
}

# Ends the wait of the client $1. Servers up to Redis 8.0 and Valkey 8.1 crash if its command is put off (CLIENT PAUSE,
# FAILOVER). DQ.ACK changes nothing here, as no id has a #, but it is a write, and so the whole transaction is put off
# as well then.
unblock() {
    local answer
    answer=$(timeout 0.5 redis-cli -p "$port" <<<"MULTI"$'\n'"DQ.ACK $queue #"$'\n'"CLIENT UNBLOCK $1"$'\n'"EXEC")
    [[ ${answer##*$'\n'} = [01] ]]
}

# Ends the wait of pop until this script has ended. A message that has been delivered already is not lost by it. If the
# server does not end the wait, pop is killed: a message that is on its way to it is delivered again after its lease.
stop() {
    stopping=yes
    echo stopping
    (while kill -0 "$$" 2>/dev/null; do
        { read -r popper && { read -r client || client=0; }; } <"$reply" &&
            { unblock "$client" || kill -KILL -- "-$popper"; }
        sleep 0.1
    done 2>/dev/null &)
}

# Waits for a job: a signal ends `wait`, and not the job.
finish() {
    while kill -0 "$1" 2>/dev/null; do wait "$1" || true; done
}

handle() {
    trap 'echo "$id: its lease was lost" >&2; exit 1' TERM
    if close_order "$payload"; then
        [ "$(dq DQ.ACK "$queue" "$receipt")" = 1 ] || echo "$id was done too late: its lease was lost" >&2
    else
        state=$(dq DQ.NACK "$queue" "$receipt" ERROR "close_order failed")
        echo "$id failed at attempt $attempt; now ${state:-not ours}" >&2
    fi
}

# Extends the lease at half time, and ends the job $1 when it is lost: if the server says so, or cannot be asked twice.
keep_lease() {
    local deadline failures=0
    trap 'exit' TERM
    while sleep "$((lease / 2))"; do
        if deadline=$(dq DQ.EXTEND "$queue" "$receipt" LEASE "${lease}000"); then
            failures=0
            [ -n "$deadline" ] || break
        else
            failures=$((failures + 1))
            [ "$failures" -lt 2 ] || break
        fi
    done
    kill -- "-$1"
}

reply=$(mktemp)
trap 'rm -f "$reply"' EXIT
stopping=
trap stop INT TERM

while [ -z "$stopping" ]; do
    pop &
    finish "$!"
    client='' id='' payload='' attempt='' receipt='' # the last four are lines, or an empty one if nothing came in time
    {
        read -r _ && read -r client && read -r id && IFS= read -r payload && read -r attempt && read -r receipt
    } <"$reply" || true
    if [ -z "$receipt" ]; then
        [ -n "$client" ] && [ -z "$id" ] || { echo "no answer: $id" >&2; sleep 1; }
    elif [[ $receipt != "$id#"* ]]; then # the payload has more lines than one, so the receipt is not where it should be
        echo "the payload of $id is not one line: rejected" >&2
        dq DQ.NACK "$queue" "$id" DEAD ERROR "payload has more than one line" >/dev/null
    elif [ -n "$stopping" ]; then # it came together with the signal: given back, and this attempt is not counted
        dq DQ.NACK "$queue" "$receipt" NOCOUNT >/dev/null
    else
        handle &
        job=$!
        keep_lease "$job" 2>/dev/null &
        keeper=$!
        finish "$job" # work that has begun is finished
        kill -- "-$keeper" 2>/dev/null || true
        finish "$keeper"
    fi
done
