# The conformance suite, which drives the workers of all clients, for scripts/test-clients.sh.
# shellcheck shell=bash

# Puts the programs of the Rust client and dqctl where the suite looks for them. Other parts may have built them anew.
place_rust_programs() {
    scripts/build-tests.sh --quiet
    mkdir -p "$target/clients/rust"
    ln -sf "$target/debug/examples/worker" "$target/debug/examples/push" "$target/clients/rust/"
    ln -sf "$DQCTL" "$target/clients/"
}

# Whether a client has programs, and what runs them.
#   is_driven CLIENT
is_driven() {
    "$python/bin/python" - "$1" <<'END'
import sys
sys.path.insert(0, "clients/conformance")
import program
sys.exit(sys.argv[1] not in program.clients())
END
}

test_conformance() {
    local go=$target/clients/go handlers client planted
    # Its tests wait most of the time, and nothing else runs beside them.
    local jobs=$((jobs + 5))
    [ -x "$python/bin/python" ] || return 0
    part "conformance"
    place_rust_programs
    if [ -e "$go/go.work" ]; then export GOWORK=$go/go.work; fi
    pytest_twice clients/conformance "$python/bin/python"
    if [ -x "$go/goredis/worker" ]; then
        DQ_PROGRAMS=$go/goredis pytest_twice clients/conformance "$python/bin/python" --client go
    fi
    DQ_FACE=asyncio pytest_twice clients/conformance "$python/bin/python" --client python test_6_pushes.py
    for handlers in plain blocking; do
        DQ_HANDLERS=$handlers pytest_twice clients/conformance "$python/bin/python" --client rust
    done

    part "planted faults"
    mapfile -t planted <"$notes/planted"
    "$python/bin/python" clients/conformance/planted.py --turn "${PLANTED:-1/1}" "${planted[@]}"
    for client in python node go php ruby rust dqctl; do
        is_driven "$client" ||
            leave_out "the conformance of the $client client: it has no programs, or what runs them is missing"
    done
}
