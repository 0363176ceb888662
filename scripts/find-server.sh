#!/usr/bin/env bash
# Prints the path of the first server here that can load dq: redis-server or valkey-server, 7.0 or newer.
# DQ_SERVER names another one. Otherwise one line that says why, and exit 1 where there is none at all,
# exit 2 where what there is will not do.
set -euo pipefail

floor=7 # module configuration parameters came with Redis 7.0
seen=""
try() {
    local path version
    path=$(command -v "$1") || return 0
    version=$("$path" --version 2>/dev/null | sed -n 's/.* v=\([0-9][0-9.]*\).*/\1/p') || true
    if [ -n "$version" ] && [ "${version%%.*}" -ge "$floor" ]; then
        printf '%s\n' "$path"
        exit 0
    fi
    seen="$seen$path is ${version:-no server}; "
}

if [ -n "${DQ_SERVER:-}" ]; then
    try "$DQ_SERVER"
    [ -n "$seen" ] || seen="DQ_SERVER=$DQ_SERVER is no program; "
else
    try redis-server
    try valkey-server
fi
if [ -z "$seen" ]; then
    echo "dq: neither redis-server nor valkey-server is in the PATH" >&2
    exit 1
fi
echo "dq: ${seen}dq needs Redis $floor.0 or newer (https://redis.io/downloads) or Valkey (https://valkey.io/download)" >&2
exit 2
