#!/usr/bin/env bash
# Builds the module for `make run`, and prints its path: the fast one if `make build` has already built it
# from these sources, else one that takes less time to build.
set -euo pipefail
cd "$(dirname "$0")/.."

fast=$(scripts/find-module.sh release)
trial=$(scripts/find-module.sh trial)

# Whether the fast module exists and nothing that it is built from has changed since.
is_current() {
    [ -f "$fast" ] && [ -z "$(find src queue/src Cargo.toml Cargo.lock queue/Cargo.toml -newer "$fast" -print -quit)" ]
}

if is_current; then
    echo "$fast"
else
    cargo build --locked --profile trial >&2
    echo "dq: this module is built for trying it; \`make build\` builds the one that is a quarter faster" >&2
    echo "$trial"
fi
