#!/usr/bin/env bash
# Runs the server tests on several servers, one after the other, and prints a summary.
#   scripts/test-matrix.sh [--smoke] [SERVER ...]
# SERVER is the path of a redis-server or valkey-server, or a name of scripts/fetch-servers.sh. Default: all names.
# --smoke runs only the tests of areas in which servers differ. Exit 1: a test failed. Exit 3: no test failed, but a
# server was missing.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PATH:${HOME:-/root}/.cargo/bin"

# Delivery and blocking, persistence and replication, generic key commands, COMMAND, and slots that move.
smoke="delivery::popping:: delivery::blocking:: delivery::waiting:: delivery::races:: durability::persistence::
    replication::following:: keyspace::generic_keys:: interface::discovery:: lifecycle::what_happens_when::
    cluster::slots::"

filters=""
if [ "${1:-}" = --smoke ]; then
    filters=$smoke
    shift
fi
if [ $# = 0 ]; then
    mapfile -t all < <(scripts/fetch-servers.sh --names)
    set -- "${all[@]}"
fi

# The same build as that of `make test`, with one module for all servers.
scripts/build-tests.sh
DQ_MODULE=$(scripts/find-module.sh debug)
export DQ_MODULE

summary="" failed=0 missing=0
note() { summary="$summary$1"$'\n'; }
for server in "$@"; do
    case $server in
    */*) path=$server ;;
    *) path=$(scripts/fetch-servers.sh "$server" | cut -f 2) || path="" ;;
    esac
    if [ -z "$path" ] || ! version=$("$path" --version 2>/dev/null); then
        note "NOT TESTED  $server: it is missing or does not run"
        missing=3
        continue
    fi
    version=$(sed -E 's/^([A-Za-z]+).* v=([0-9.]+).*/\1 \2/' <<<"$version")
    echo "--- $server: $version"
    # shellcheck disable=SC2086 # a list of filters
    if DQ_SERVER=$path scripts/run-tests.sh --workspace --test server -- --test-threads 6 $filters; then
        note "passed      $server: $version"
    else
        note "FAILED      $server: $version"
        failed=1
    fi
done
printf '\n%s' "$summary"
[ "$failed" = 0 ] || exit 1
exit "$missing"
