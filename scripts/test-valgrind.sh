#!/usr/bin/env bash
# Runs server tests on a server under valgrind, and fails where valgrind reports an error in which dq has a part.
#   scripts/test-valgrind.sh [FILTER ...]      without a filter: what comes from outside, is freed elsewhere, or waits
# Some fifty times slower than the tests alone. It takes a server that finds its allocator in a library of its own, as
# Debian's do: valgrind puts its own allocator in the place of that.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PATH:${HOME:-/root}/.cargo/bin"

command -v valgrind >/dev/null || {
    echo "dq: missing: valgrind. Install it with: apt-get install valgrind (Debian, Ubuntu) | dnf install valgrind (Fedora)" >&2
    exit 1
}
if [ $# = 0 ]; then
    set -- robustness::hostile::an producing::batches:: delivery::blocking:: changing::cancelling:: keyspace::generic_keys:: \
        durability::persistence:: changing::purging:: changing::redriving:: looking::scanning:: delivery::several_queues::
fi

server=$(scripts/find-server.sh)
here=$PWD/target/valgrind
rm -rf "$here"
mkdir -p "$here/logs"
printf '#!/bin/sh\nexec valgrind --quiet --soname-synonyms="somalloc=libjemalloc*" --num-callers=30 --log-file="%s/logs/%%p" "%s" "$@"\n' \
    "$here" "$server" >"$here/server"
chmod +x "$here/server"

code=0
# Everything takes its time: tests are twenty times as patient.
DQ_SERVER="$here/server" DQ_PATIENCE=20 cargo test --locked --test server -- --test-threads 3 "$@" || code=$?
if grep -l libdq "$here"/logs/* >"$here/reports"; then
    xargs cat <"$here/reports"
    echo "dq: valgrind reports errors in which dq has a part, see above" >&2
    exit 1
fi
echo "dq: valgrind reports no error in which dq has a part"
exit "$code"
