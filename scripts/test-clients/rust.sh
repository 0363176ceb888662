# The tests of the Rust client and its backend of apalis that `make test` leaves out, for scripts/test-clients.sh.
# shellcheck shell=bash

# What cargo says of a test that failed.
RUST_FAILURE='^---- .* stdout'

test_rust() {
    # A workspace of its own, which `make lint` and `make test-client` do not know.
    local apalis=(--locked --quiet --manifest-path clients/rust/apalis/Cargo.toml)
    part "Rust client with traces"
    nice -n 10 cargo test --locked --quiet -p dq-client --features otel --test it --no-run
    scripts/try-twice.sh "$RUST_FAILURE" cargo test --locked --quiet -p dq-client --features otel --test it -- traces

    part "apalis"
    if ! cargo fetch "${apalis[@]}"; then
        leave_out "the backend of apalis: its dependencies cannot be downloaded"
        return
    fi
    cargo fmt --manifest-path clients/rust/apalis/Cargo.toml -- --check
    export CARGO_TARGET_DIR=$target
    nice -n 10 cargo clippy "${apalis[@]}" --all-targets -- -D warnings
    nice -n 10 cargo test "${apalis[@]}" --no-run
    scripts/try-twice.sh "$RUST_FAILURE" cargo test "${apalis[@]}" -- --test-threads "$jobs"
}
