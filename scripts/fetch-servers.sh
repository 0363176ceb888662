#!/usr/bin/env bash
# Downloads servers from the archives of Debian into a cache directory and prints one line for each:
#   NAME <tab> PATH
#   scripts/fetch-servers.sh [NAME ...]        all servers if no name is given; `--names` lists the names
# PATH takes the arguments of redis-server or valkey-server. Nothing is installed. The script needs apt-get and dpkg,
# but not root. Downloads are kept in DQ_SERVERS_DIR (~/.cache/dq-servers), which can be removed at any time.
set -euo pipefail

# The name of each server says its version; the second column is the suite of Debian that has it.
servers='
redis-7.0    bookworm            redis-server
redis-8.0.2  trixie              redis-server
redis-8.0    sid                 redis-server
valkey-8.0   bookworm-backports  valkey-server
valkey-8.1   trixie              valkey-server
valkey-9.1   sid                 valkey-server
'

names() { awk 'NF { print $1 }' <<<"$servers"; }
if [ "${1:-}" = --names ]; then
    names
    exit
fi

or_else='; name your own instead: SERVERS="path ..."'
. "$(dirname "$0")/debian-suites.sh"

fetch() {
    local name=$1 suite=$2 package=$3 dir=$cache/$1 command
    if [ ! -x "$dir/server" ]; then
        unpack "$name" "$suite" "$package" || return 1
        # By `exec`, so that the process is the server itself.
        command=$(under_own_loader "$name" "$package" "$package") || return 1
        printf '#!/bin/sh\nexec %s "$@"\n' "$command" >"$dir/server.new"
        chmod +x "$dir/server.new"
        "$dir/server.new" --version >/dev/null || { say "$name does not run on this machine"; return 1; }
        mv "$dir/server.new" "$dir/server"
    fi
    printf '%s\t%s\n' "$name" "$dir/server"
}

if [ $# = 0 ]; then
    mapfile -t wanted < <(names)
    set -- "${wanted[@]}"
fi
failed=0
for name in "$@"; do
    row=$(awk -v name="$name" '$1 == name' <<<"$servers")
    if [ -z "$row" ]; then
        say "unknown server $name; the names are: $(names | paste -sd' ')"
        exit 1
    fi
    # shellcheck disable=SC2086 # name, suite, package
    fetch $row || { say "$name could not be downloaded"; failed=1; }
done
exit $failed
