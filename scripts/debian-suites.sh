# Unpacks packages of Debian's suites beside the system, for scripts/fetch-*.sh, which source this file. Nothing is
# installed, and root is not needed. Everything is kept in DQ_SERVERS_DIR (~/.cache/dq-servers), which can be removed at
# any time. Sets `cache` to that directory.
# shellcheck shell=bash

say() { echo "dq: $*" >&2; }
for tool in apt-get apt-cache dpkg; do
    command -v "$tool" >/dev/null || {
        say "$(basename "$0") downloads from Debian's archives, which needs $tool${or_else:-}"
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

# Prints packages and everything that they depend on, including libc, which may be newer than that of this machine, but
# without the tools that every system has. `use_suite` comes first.
#   with_dependencies PACKAGE ...
with_dependencies() {
    local wanted
    # apt's own resolver, for a machine on which nothing is installed. Nothing depends on essential packages by name.
    wanted=$(apt-get "${apt[@]}" -o pkgCacheGen::Essential=none --no-install-recommends --simulate install "$@") ||
        return 1
    mapfile -t wanted < <(awk '$1 == "Inst" { print $2 }' <<<"$wanted")
    apt-cache "${apt[@]}" show --no-all-versions "${wanted[@]}" | awk '
        $1 == "Package:" { package = $2 }
        $1 == "Priority:" && (package ~ /^lib/ || $2 !~ /^(required|important|standard)$/) { print package }'
}

# Downloads packages of a suite, with their dependencies, into a directory.
#   download SUITE DIRECTORY PACKAGE ...
download() {
    local apt=() wanted
    use_suite "$1" || return 1
    mkdir -p "$2"
    wanted=$(with_dependencies "${@:3}" 2>"$2/log") || return 1
    # shellcheck disable=SC2086 # a list of packages
    (cd "$2" && apt-get "${apt[@]}" download $wanted >log 2>&1)
}

# Unpacks packages of a suite, with their dependencies, into the directory $cache/NAME/root.
#   unpack NAME SUITE PACKAGE ...
unpack() {
    local name=$1 suite=$2 dir=$cache/$1 deb
    say "$name: downloading ${*:3} of Debian $suite"
    rm -rf "$dir"
    mkdir -p "$dir/root"
    if ! download "$suite" "$dir/packages" "${@:3}"; then
        rm -f "$cache/suites/$suite/known" # The lists are old: the mirror has newer packages by now.
        download "$suite" "$dir/packages" "${@:3}" || { cat "$dir/packages/log" >&2; return 1; }
    fi
    for deb in "$dir"/packages/*.deb; do dpkg -x "$deb" "$dir/root" || return 1; done
    rm -rf "$dir/packages"
}

# Prints the words, quoted for a shell, with which a program of an unpacked suite runs under the loader and with the
# libraries of that suite.
#   under_own_loader NAME PROGRAM ARGV0
under_own_loader() {
    local root=$cache/$1/root libraries loader
    libraries=$(find "$root" -path '*/lib/*-linux-gnu*' -name 'lib*.so.*' -printf '%h\n' | sort -u | paste -sd:)
    loader=$(find "$root" -name 'ld-linux*.so.*' | head -n 1)
    [ -n "$loader" ] || { say "$1: its packages contain no loader"; return 1; }
    printf '"%s" --argv0 "%s" --library-path "%s" "%s"' "$loader" "$3" "$libraries" "$root/usr/bin/$2"
}
