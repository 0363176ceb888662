#!/usr/bin/env bash
# Runs a server test many times while other processes keep all cores busy, to see whether it depends on the speed of the
# machine. Prints how often it failed, and where the output of the failures is.
#   scripts/repeat-test.sh NAME [TIMES]           TIMES: 100
# NAME is a part of the names of one or more tests. DQ_SLOW_FSYNC=3000: on a disk that is slow at times as well.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PATH:${HOME:-/root}/.cargo/bin"
[ $# -ge 1 ] || { sed -n '2,5s/^# \{0,1\}//p' "$0" >&2 && exit 2; }
name=$1 times=${2:-100}

scripts/build-tests.sh
DQ_MODULE=$(scripts/find-module.sh debug)
export DQ_MODULE

loops=()
trap 'kill "${loops[@]}" 2>/dev/null' EXIT
for _ in $(seq "$(getconf _NPROCESSORS_ONLN)"); do
    (while :; do :; done) &
    loops+=($!)
done

kept=$(mktemp -d)
failed=0
for run in $(seq "$times"); do
    if ! cargo test --locked --workspace --test server -- --test-threads 6 "$name" >"$kept/$run" 2>&1; then
        failed=$((failed + 1))
        echo "run $run failed: $kept/$run"
    else
        grep -q "test result: ok. [1-9]" "$kept/$run" || { echo "dq: no test has a name with $name" >&2 && exit 2; }
        rm "$kept/$run"
    fi
done
echo "dq: $name failed in $failed of $times runs"
[ "$failed" = 0 ]
