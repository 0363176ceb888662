#!/usr/bin/env bash
# Builds all that the tests use: the module that they load into servers, the programs, the tests, and the examples.
#   scripts/build-tests.sh [OPTION ...]           options of `cargo build`, such as --quiet
# It is one build of the whole workspace: cargo would build shared crates again, with other features, if it built only a
# part, or if it left out the tests.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PATH:${HOME:-/root}/.cargo/bin"
exec cargo build --locked "$@" --workspace --lib --bins --tests --examples
