#!/usr/bin/env bash
# Starts a server with dq in the foreground, as redis.conf.example says, its data in target/run/PORT.
#   scripts/run-server.sh [options of the server, such as --appendonly no]
# DQ_PORT: the port to try first (6379). DQ_SERVER: the server to start. DQ_MODULE: the module to load.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$(pwd -P)
target=${CARGO_TARGET_DIR:-target}

die() {
    echo "dq: $*" >&2
    exit 1
}

# Whether somebody listens there already: on either address that redis.conf.example binds.
taken() {
    (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null || (exec 3<>"/dev/tcp/::1/$1") 2>/dev/null
}

case $(uname) in Darwin) library=libdq.dylib ;; *) library=libdq.so ;; esac
module=${DQ_MODULE:-$target/release/$library}
[ -f "$module" ] || die "$module is not there. Build it with: make build"
case $module in /*) ;; *) module=$root/$module ;; esac

server=$(scripts/find-server.sh)
cli=redis-cli
command -v redis-cli >/dev/null || cli=valkey-cli

wanted=${DQ_PORT:-6379}
port=$wanted
while taken "$port"; do
    port=$((port + 1))
    [ "$port" -lt $((wanted + 100)) ] || die "no free port from $wanted to $((port - 1))"
done

case $target in /*) data=$target/run/$port ;; *) data=$root/$target/run/$port ;; esac
mkdir -p "$data"
{
    echo "# Written by scripts/run-server.sh from redis.conf.example at each start."
    grep -v '^loadmodule ' redis.conf.example
    echo "loadmodule \"$module\""
    echo "dir \"$data\""
    echo "port $port"
} >"$data/redis.conf"

[ "$port" = "$wanted" ] || echo "dq: port $wanted is taken, using $port"
echo "dq: connect with: $cli -p $port    (stop with Ctrl-C; data in ${data#"$root"/})"
exec "$server" "$data/redis.conf" "$@"
