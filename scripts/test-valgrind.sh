#!/usr/bin/env bash
# Runs server tests on a server under valgrind. Fails if valgrind reports an error with dq in its stack trace.
#   scripts/test-valgrind.sh [FILTER ...]      default: untrusted input, frees on other threads, blocked clients
# The tests take about fifty times as long. The server must have its allocator in a shared library, as Debian's servers
# do, because valgrind replaces it.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PATH:${HOME:-/root}/.cargo/bin"

command -v valgrind >/dev/null || {
    echo "dq: missing: valgrind. Install it with:" \
        "apt-get install valgrind (Debian, Ubuntu) | dnf install valgrind (Fedora)" >&2
    exit 1
}
if [ $# = 0 ]; then
    set -- robustness::hostile::an producing::batches:: delivery::blocking:: changing::cancelling:: \
        keyspace::generic_keys:: durability::persistence:: changing::purging:: changing::redriving:: \
        looking::scanning:: delivery::several_queues::
fi

server=$(scripts/find-server.sh)
here=$PWD/target/valgrind
rm -rf "$here"
mkdir -p "$here/logs"
# The server compresses payloads with LZF, which reads a table that it does not initialise, on purpose.
printf '{\nlzf\nMemcheck:%s\nfun:lzf_compress\n}\n' Cond Value8 >"$here/suppressions"
options="--quiet --suppressions='$here/suppressions' --soname-synonyms='somalloc=libjemalloc*' --num-callers=30"
printf '#!/bin/sh\nexec valgrind %s --log-file="%s/logs/%%p" "%s" "$@"\n' \
    "$options" "$here" "$server" >"$here/server"
chmod +x "$here/server"

code=0
# Tests wait twenty times as long for a condition.
DQ_SERVER="$here/server" DQ_PATIENCE=20 \
    cargo test --locked --workspace --test server -- --test-threads 3 "$@" || code=$?
if grep -l libdq "$here"/logs/* >"$here/reports"; then
    xargs cat <"$here/reports"
    echo "dq: valgrind reports errors with dq in their stack traces, see above" >&2
    exit 1
fi
echo "dq: valgrind reports no errors in dq"
exit "$code"
