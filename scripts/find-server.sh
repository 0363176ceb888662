#!/usr/bin/env bash
# Prints the path of a server that can load dq: the first of redis-server and valkey-server in the PATH that is version
# 7.0 or newer. DQ_SERVER names another one. On failure it prints the reason: exit 1 if there is no server at all, exit
# 2 if the server cannot be used.
set -euo pipefail

floor=7 # Redis 7.0 introduced configuration parameters of modules
seen=""
try() {
    local path version
    path=$(command -v "$1") || return 0
    version=$("$path" --version 2>/dev/null | sed -n 's/.* v=\([0-9][0-9.]*\).*/\1/p') || true
    if [ -n "$version" ] && [ "${version%%.*}" -ge "$floor" ]; then
        printf '%s\n' "$path"
        exit 0
    fi
    seen="$seen$path is ${version:-not a server}; "
}

if [ -n "${DQ_SERVER:-}" ]; then
    try "$DQ_SERVER"
    [ -n "$seen" ] || seen="DQ_SERVER=$DQ_SERVER is not a program; "
else
    try redis-server
    try valkey-server
fi
if [ -z "$seen" ]; then
    echo "dq: neither redis-server nor valkey-server is in the PATH" >&2
    exit 1
fi
needed="Redis $floor.0 or newer (https://redis.io/downloads) or Valkey (https://valkey.io/download)"
echo "dq: ${seen}dq needs $needed" >&2
exit 2
