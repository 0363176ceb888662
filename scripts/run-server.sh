#!/usr/bin/env bash
# Starts a server with dq in the foreground, as redis.conf.example says, its data in run/PORT.
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

# Whether the server is there and has loaded its data.
answers() (
    exec 3<>"/dev/tcp/127.0.0.1/$port" && printf 'PING\r\n' >&3 && read -r -t 1 line <&3 || exit 1
    case $line in -LOADING*) exit 1 ;; esac
) 2>/dev/null

wanted=${DQ_PORT:-6379}
case $wanted in 0* | *[!0-9]* | ??????*) die "DQ_PORT=$wanted is no port: 1 to 65535" ;; esac
[ "$wanted" -le 65535 ] || die "DQ_PORT=$wanted is no port: 1 to 65535"

case $(uname) in Darwin) library=libdq.dylib ;; *) library=libdq.so ;; esac
module=${DQ_MODULE:-$target/release/$library}
[ -f "$module" ] || die "$module is not there. Build it with: make build"
case $module in /*) ;; *) module=$root/$module ;; esac

server=$(scripts/find-server.sh)
cli=redis-cli
command -v redis-cli >/dev/null || cli=valkey-cli

port=$wanted
while taken "$port"; do
    port=$((port + 1))
    if [ "$port" -ge $((wanted + 100)) ] || [ "$port" -gt 65535 ]; then
        die "no free port from $wanted to $((port - 1))"
    fi
done

data=$root/run/$port # not below target, where a clean would pull it from under a running server
mkdir -p "$data"
{
    echo "# Written by scripts/run-server.sh from redis.conf.example at each start."
    grep -v '^loadmodule ' redis.conf.example
    echo "loadmodule \"$module\""
    echo "dir \"$data\""
    echo "port $port"
} >"$data/redis.conf"

[ "$port" = "$wanted" ] || echo "dq: port $wanted is taken, using $port"
# Said below the server's own lines: by a process that waits for it beside it, and is not its child. The server takes
# this script's place, and its id, so that signals are its own.
(
    while kill -0 $$ 2>/dev/null; do
        if answers; then
            echo "dq: connect with: $cli -p $port    (stop with Ctrl-C; data in run/$port)"
            break
        fi
        sleep 0.1
    done &
)
exec "$server" "$data/redis.conf" "$@"
