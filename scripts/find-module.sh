#!/usr/bin/env bash
# Prints where cargo puts the module in a profile.
#   scripts/find-module.sh debug|release
set -euo pipefail
cd "$(dirname "$0")/.."
case $(uname) in Darwin) library=libdq.dylib ;; *) library=libdq.so ;; esac
target=${CARGO_TARGET_DIR:-target}
case $target in /*) ;; *) target=$PWD/$target ;; esac
echo "$target/${1:-release}/$library"
