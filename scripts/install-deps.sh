#!/usr/bin/env bash
# Installs what is missing for the named parts. Does nothing if nothing is missing.
#   scripts/install-deps.sh [build] [lint] [server] [python] [bench] [prometheus]      by default all but the last two
# bench: the programs that dq is compared with. The bench leaves out those that cannot be installed.
# prometheus: Prometheus with its promtool, which check what contrib/ and `dqctl export` give it.
# It uses apt-get, as root or through `sudo -n`, and rustup for components of Rust. If it cannot install, it prints one
# line that says what to install, and fails. It also runs on bash 3.2 (macOS).
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PATH:${HOME:-/root}/.cargo/bin"

die() {
    echo "dq: $*" >&2
    exit 1
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

# --- what is installed ---

# A C compiler with the headers of the C library. Rust links with it, and the redis-module crate has one C file.
have_cc() {
    command -v cc >/dev/null && echo '#include <stdio.h>' | cc -E - >/dev/null 2>&1
}

# bindgen needs libclang, in a directory where the clang-sys crate looks for it, and the headers of clang.
have_libclang() {
    local dir lib header found=""
    [ -z "${LIBCLANG_PATH:-}" ] || return 0 # set by the user: not checked
    local config="${LLVM_CONFIG_PATH:-llvm-config}"
    local prefix="/nonexistent"
    if command -v "$config" >/dev/null; then prefix=$("$config" --prefix 2>/dev/null) || true; fi
    for dir in "$prefix"/lib* /usr/lib/*-linux-* /usr/lib/llvm-*/lib /usr/lib64 /usr/lib /usr/local/lib \
        /usr/local/llvm*/lib \
        /usr/local/opt/llvm*/lib /Library/Developer/CommandLineTools/usr/lib \
        /Applications/Xcode.app/Contents/Developer/Toolchains/XcodeDefault.xctoolchain/usr/lib; do
        for lib in "$dir"/libclang.so* "$dir"/libclang-[0-9]*.so* "$dir"/libclang.dylib; do
            if [ -e "$lib" ]; then found=yes; fi
        done
        for header in "$dir"/clang/*/include/stddef.h "$dir"/llvm-*/lib/clang/*/include/stddef.h; do
            if [ -n "$found" ] && [ -e "$header" ]; then return 0; fi
        done
    done
    # The library and the headers may be in different directories.
    [ -n "$found" ] && for header in /usr/lib/clang/*/include/stddef.h /usr/lib/llvm-*/lib/clang/*/include/stddef.h; do
        if [ -e "$header" ]; then return 0; fi
    done
    return 1
}

# A server that is installed but too old is not replaced: somebody may use it, and apt has no newer one.
have_server() {
    local code=0
    scripts/find-server.sh >/dev/null 2>&1 || code=$?
    if [ "$code" = 2 ]; then scripts/find-server.sh || exit 1; fi
    return "$code"
}
have_cli() { command -v redis-cli >/dev/null || command -v valkey-cli >/dev/null; }

# A Python that can create virtual environments. Debian has the module for that in a separate package.
have_python() {
    python3 -IS - 2>/dev/null <<'EOF'
import importlib.util
import sys

sys.exit(not all(importlib.util.find_spec(name) for name in ("venv", "ensurepip")))
EOF
}

# What dq is compared with. A node without npm, and a beanstalkd outside the PATH, were installed by somebody else.
have_beanstalkd() { PATH="$PATH:/usr/sbin:/usr/local/sbin" command -v beanstalkd >/dev/null; }
have_prometheus() { command -v prometheus >/dev/null && command -v promtool >/dev/null; }
have_npm() { command -v node >/dev/null && command -v npm >/dev/null; }

# --- what is missing: its name, and its packages on Debian, Fedora and Homebrew (xcode: Apple's command line tools) ---

missing="" debian="" fedora="" brew=""
need() {
    missing="$missing${missing:+, }$1"
    debian="$debian $2"
    case "$fedora " in *" $3 "*) ;; *) fedora="$fedora $3" ;; esac
    case "$brew " in *" $4 "*) ;; *) brew="$brew $4" ;; esac
}

look() {
    missing="" debian="" fedora="" brew=""
    local part
    for part in "$@"; do
        case $part in
        build)
            have_cc || need "a C compiler" "gcc libc6-dev" "gcc" "xcode"
            have_libclang || need "libclang" "libclang-dev" "clang-devel" "xcode"
            ;;
        server)
            have_server || need "redis-server or valkey-server 7.0+" "redis-server" "valkey" "redis"
            have_cli || need "redis-cli or valkey-cli" "redis-tools" "valkey" "redis"
            ;;
        python) have_python || need "python3 with venv" "python3 python3-venv" "python3" "python" ;;
        bench)
            have_beanstalkd || need "beanstalkd" "beanstalkd" "beanstalkd" "beanstalkd"
            have_npm || need "node and npm" "$(command -v node >/dev/null || echo nodejs) npm" "nodejs-npm" "node"
            ;;
        prometheus)
            have_prometheus ||
                need "prometheus and promtool" "prometheus" "golang-github-prometheus" "prometheus"
            ;;
        lint) ;;
        *) die "unknown part $part; the parts are: build, lint, server, python, bench, prometheus" ;;
        esac
    done
}

# --- installing ---

# The package of a server starts it, now and at each boot, on a port that may be needed. This prevents it.
hold_services() {
    local policy=/usr/sbin/policy-rc.d
    [ ! -e "$policy" ] || return 0
    printf '#!/bin/sh\n# Left behind by an interrupted scripts/install-deps.sh of dq. It can be removed.\nexit 101\n' |
        as_root tee "$policy" >/dev/null
    as_root chmod 755 "$policy"
    trap 'as_root rm -f /usr/sbin/policy-rc.d' EXIT
}

apt() {
    as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get -qq -o DPkg::Lock::Timeout=300 "$@" </dev/null
}

install_packages() {
    local package known=yes fresh_servers=""
    for package in "$@"; do
        LC_ALL=C apt-cache policy "$package" 2>/dev/null | grep -q 'Candidate: [^(]' || known=no
        case $package in redis-server | beanstalkd | prometheus) fresh_servers="$fresh_servers $package" ;; esac
    done
    echo "dq: installing $*"
    if [ -n "$fresh_servers" ]; then hold_services; fi
    if [ "$known" = no ]; then apt update; fi
    # Outdated package lists may name versions that the mirror no longer has. Update them only then.
    apt install -y --no-install-recommends "$@" >/dev/null || {
        apt update
        apt install -y --no-install-recommends "$@" >/dev/null
    }
    if [ -n "$fresh_servers" ] && [ -d /run/systemd/system ]; then
        # shellcheck disable=SC2086 # a list of units of the packages' names
        as_root systemctl disable --quiet $fresh_servers || true
    fi
}

can_install() {
    command -v apt-get >/dev/null && { [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; }
}

say_what_to_install() {
    local macos=""
    case "$brew " in *" xcode "*) macos="xcode-select --install" brew=${brew/ xcode/} ;; esac
    if [ -n "$brew" ]; then macos="$macos${macos:+; }brew install$brew"; fi
    die "missing: $missing. Install it with: apt-get install$debian (Debian, Ubuntu)" \
        "| dnf install$fedora (Fedora) | $macos (macOS)"
}

# --- main ---

if [ $# = 0 ]; then set -- build lint server python; fi

case " $* " in
*" build "* | *" lint "*)
    command -v cargo >/dev/null || die "missing: Rust 1.85 or newer. Install it from https://rustup.rs"
    ;;
esac

look "$@"
if [ -n "$missing" ]; then
    can_install || say_what_to_install
    # shellcheck disable=SC2086 # a list of package names
    install_packages $debian || say_what_to_install
    look "$@"
    [ -z "$missing" ] || say_what_to_install
fi

case " $* " in *" lint "*)
    for component in rustfmt clippy; do
        tool=$component
        if [ "$tool" = rustfmt ]; then tool=fmt; fi
        cargo "$tool" --version >/dev/null 2>&1 && continue
        command -v rustup >/dev/null ||
            die "missing: cargo $tool. Install it with: rustup component add $component, or from where your Rust came"
        echo "dq: installing $component"
        rustup component add "$component"
    done
    ;;
esac
