#!/usr/bin/env bash
# Downloads servers from the archives of Debian into a cache directory and prints one line for each:
#   NAME <tab> PATH
#   scripts/fetch-servers.sh [NAME ...]        all servers if no name is given; `--names` lists the names
# PATH takes the arguments of redis-server or valkey-server. Nothing is installed. The script needs apt-get and dpkg, but
# not root. Downloads are kept in DQ_SERVERS_DIR (~/.cache/dq-servers), which can be removed at any time.
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

say() { echo "dq: $*" >&2; }
for tool in apt-get apt-cache dpkg; do
    command -v "$tool" >/dev/null || {
        say "servers are downloaded from Debian's archives, which needs $tool; name your own instead: SERVERS=\"path ...\""
        exit 1
    }
done

cache="${DQ_SERVERS_DIR:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/dq-servers}"
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# The mirror that this machine uses, or else Debian's own.
mirror() {
    local found
    found=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2>/dev/null |
        grep -v '^ *#' | grep -oE '[a-z+]+://[^ ]+/debian/?( |$)' | head -n 1 | tr -d ' ') || true
    echo "${found:-http://deb.debian.org/debian}"
}

# The sources of a suite. Backports need the suite that they are made for as well.
list() {
    local suite
    for suite in "$2" "${2%-backports}"; do echo "deb [$1] $(mirror) $suite main"; done | sort -u
}

# Sets `apt` to options with which apt-get knows one suite and ignores the packages of this machine.
use_suite() {
    local suite=$1 dir=$cache/suites/$1
    mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial"
    touch "$dir/status"
    apt=(-qq -o "Dir::Etc::SourceList=$dir/sources.list" -o Dir::Etc::SourceParts=/dev/null
        -o Dir::Etc::Preferences=/dev/null -o Dir::Etc::PreferencesParts=/dev/null -o "Dir::State::Lists=$dir/lists"
        -o "Dir::State::status=$dir/status" -o "Dir::Cache=$dir/cache" -o Debug::NoLocking=1
        -o "APT::Sandbox::User=$(id -un)" -o Acquire::Languages=none)
    if [ -e "$dir/known" ]; then return; fi
    say "downloading the package lists of Debian $suite"
    list "signed-by=$keyring" "$suite" >"$dir/sources.list"
    if ! apt-get "${apt[@]}" update >"$dir/log" 2>&1 || grep -q NO_PUBKEY "$dir/log"; then
        # The suite is newer than the keyring of this machine. Only tests run its packages.
        say "the signature of $suite cannot be checked with the keyring of this machine; its mirror is trusted"
        list trusted=yes "$suite" >"$dir/sources.list"
        apt-get "${apt[@]}" update >"$dir/log" 2>&1 || { cat "$dir/log" >&2; return 1; }
    fi
    touch "$dir/known"
}

# The libraries that the packages depend on, and the package of a server's tools.
libraries_of() {
    apt-cache "${apt[@]}" depends --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances "$@" \
        2>/dev/null | awk '$1 ~ /Depends:$/ && $2 ~ /^(lib|redis-tools$|valkey-tools$)/ { print $2 }' | sort -u
}

# The package and all the libraries that it needs, including libc, which may be newer than those of this machine.
with_libraries() {
    local found=("$1") level=("$1") package
    while [ ${#level[@]} -gt 0 ]; do
        mapfile -t level < <(libraries_of "${level[@]}" | grep -vxF "$(printf '%s\n' "${found[@]}")")
        for package in "${level[@]}"; do found+=("$package"); done
    done
    printf '%s\n' "${found[@]}"
}

fetch() {
    local name=$1 suite=$2 package=$3 dir=$cache/$1
    if [ ! -x "$dir/server" ]; then
        local apt=() wanted deb libraries loader
        use_suite "$suite" || return 1
        say "$name: downloading $package of Debian $suite"
        rm -rf "$dir"
        mkdir -p "$dir/packages" "$dir/root"
        mapfile -t wanted < <(with_libraries "$package")
        (cd "$dir/packages" && apt-get "${apt[@]}" download "${wanted[@]}" >"$dir/log" 2>&1) || { cat "$dir/log" >&2; return 1; }
        for deb in "$dir"/packages/*.deb; do dpkg -x "$deb" "$dir/root" || return 1; done
        rm -rf "$dir/packages"
        libraries=$(find "$dir/root" -type d -path '*/lib/*-linux-gnu*' | sort | paste -sd:)
        loader=$(find "$dir/root" -name 'ld-linux*.so.*' | head -n 1)
        [ -n "$loader" ] || { say "$name: its packages contain no loader"; return 1; }
        # It runs under the loader of its own suite, and by `exec`, so that the process is the server itself.
        printf '#!/bin/sh\nexec "%s" --argv0 %s --library-path "%s" "%s" "$@"\n' \
            "$loader" "$package" "$libraries" "$dir/root/usr/bin/$package" >"$dir/server.new"
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
