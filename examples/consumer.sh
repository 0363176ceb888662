#!/usr/bin/env bash
# A consumer with redis-cli: consumer.sh [port]. Payloads must be single lines.
set -euo pipefail

queue=orders:close
port=${1:-6379}

# Ctrl-C reaches every program of the terminal: what is at work ignores it, in a shell of its own, and the loop
# ends after it. So dq is called in $(...) only.
dq() {
    trap '' INT TERM
    redis-cli -e -p "$port" "$@" # -e: an error reply is a failure
}

close_order() (
    trap '' INT TERM
    echo "closing $1"
)

running=yes # the message in hand is still finished
trap 'running=' INT TERM

id=$(dq DQ.PUSH "$queue" "order 1001" ID order-1001 DELAY 2000)
echo "pushed ${id:-nothing: it is there already}"

while [ -n "$running" ]; do
    # One message is four lines: id, payload, attempt, receipt. Nothing in time is one empty line.
    message=$(dq DQ.POP "$queue" BLOCK 5000)
    [ -n "$message" ] || continue
    { read -r id && IFS= read -r payload && read -r attempt && read -r receipt; } <<<"$message"

    if close_order "$payload"; then
        # 0: the lease had ended and another consumer has the message. Work that takes long calls DQ.EXTEND.
        [ "$(dq DQ.ACK "$queue" "$receipt")" = 1 ] || echo "$id was done too late" >&2
    else
        state=$(dq DQ.NACK "$queue" "$receipt" ERROR "close_order failed")
        echo "$id failed at attempt $attempt; now $state" >&2
    fi
done
