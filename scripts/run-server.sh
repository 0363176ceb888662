#!/usr/bin/env bash
# Starts a server with dq in the foreground, configured by redis.conf.example, with its data in run/PORT.
#   scripts/run-server.sh [options of the server, such as --appendonly no]
# DQ_PORT: the first port to try (6379). DQ_SERVER: the server to start. DQ_MODULE: the module to load.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$(pwd -P)

die() {
    echo "dq: $*" >&2
    exit 1
}

# Whether the port is in use, on either of the addresses that redis.conf.example binds.
taken() {
    (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null || (exec 3<>"/dev/tcp/::1/$1") 2>/dev/null
}

# Whether the server accepts connections and has loaded its data.
answers() (
    exec 3<>"/dev/tcp/127.0.0.1/$port" && printf 'PING\r\n' >&3 && read -r -t 1 line <&3 || exit 1
    case $line in -LOADING*) exit 1 ;; esac
) 2>/dev/null

wanted=${DQ_PORT:-6379}
case $wanted in 0* | *[!0-9]* | ??????*) die "DQ_PORT=$wanted is not a port, 1 to 65535" ;; esac
[ "$wanted" -le 65535 ] || die "DQ_PORT=$wanted is not a port, 1 to 65535"

module=${DQ_MODULE:-$(scripts/find-module.sh release)}
[ -f "$module" ] || die "$module does not exist. Build it with: make build"
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

data=$root/run/$port # not below target, because `make clean` would delete it under a running server
mkdir -p "$data"
{
    echo "# Written by scripts/run-server.sh from redis.conf.example at each start."
    grep -v '^loadmodule ' redis.conf.example
    echo "loadmodule \"$module\""
    echo "dir \"$data\""
    echo "port $port"
} >"$data/redis.conf"

[ "$port" = "$wanted" ] || echo "dq: port $wanted is in use, using $port"
# The last line must come after the output of the server, so a background process waits for the server and prints it.
# The server replaces this script (exec), so that it receives the signals itself.
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
