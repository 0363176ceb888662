#!/usr/bin/env bash
# Tests the clients in clients/: each one's own tests, then the conformance suite, which drives all of them.
#   scripts/test-clients.sh
# It needs a server (DQ_SERVER), and builds the module and the programs. Packages are installed once, into
# target/clients; Go and redigo come from Debian, for root. What cannot run is named at the end, and is no failure. Each
# test that passed only when it was tried a second time is named there too. PLANTED=2/3: plants only the second third of
# the faults.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
case $target in /*) ;; *) target=$PWD/$target ;; esac

scripts/build-tests.sh --quiet
DQ_MODULE=${DQ_MODULE:-$(scripts/find-module.sh debug)}
DQ_SERVER=$(scripts/find-server.sh)
# The servers of all tests keep their files there.
TMPDIR=$(scripts/find-test-dir.sh)
# Imports are tested with it, and some documents show it.
DQCTL=$target/debug/dqctl
export DQ_MODULE DQ_SERVER TMPDIR DQCTL
echo "dq: the servers of the tests keep their files in $TMPDIR"
jobs=${TEST_THREADS:-3}

# The parts that run beside each other.
names=() processes=()
# What they tell each other, in files.
notes=$(mktemp -d)
touch "$notes/left-out" "$notes/planted" "$notes/second-looks" "$notes/failed-twice"
# For scripts/try-twice.sh, which processes of processes call.
export SECOND_LOOKS=$notes/second-looks FAILED_TWICE=$notes/failed-twice

# Says that something is not tested.
#   leave_out TEXT
leave_out() {
    echo "$1" >>"$notes/left-out"
}

# Says that faults can be planted into a client.
#   plant CLIENT
plant() {
    echo "$1" >>"$notes/planted"
}

# Ends what still runs, and shows how far it came.
end_all() {
    local index
    for index in "${!names[@]}"; do
        kill -- "-${processes[$index]}" 2>/dev/null || true
        echo "dq: ${names[$index]} had not ended:"
        tail -n 30 "$notes/${names[$index]}"
    done
}

sum_up() {
    end_all
    sed 's/^/dq: NEEDED A SECOND LOOK: /' "$SECOND_LOOKS"
    sed 's/^/dq: NOT TESTED: /' "$notes/left-out"
    sed 's/^/dq: FAILED TWICE: /' "$FAILED_TWICE"
    rm -rf "$notes"
}
trap sum_up EXIT

# Prints the heading of a part, and after how many seconds it begins.
part() {
    echo "--- $1 (after $SECONDS s)"
}

debian_install() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null &&
        apt-get -o DPkg::Lock::Timeout=300 install -qq -y --no-install-recommends "$@" >/dev/null
}

# Prints the launcher of a language that can be fetched.
#   fetched NAME
fetched() {
    scripts/fetch-languages.sh "$1" | cut -f 2
}

# Calls a function with the launcher of each of these languages, and leaves out those that cannot be had.
#   on_each WHAT FUNCTION NAME ...
on_each() {
    local name launcher
    for name in "${@:3}"; do
        if launcher=$(fetched "$name") && [ -n "$launcher" ]; then
            "$2" "$launcher"
        else
            leave_out "$1 on $name: its packages cannot be downloaded from Debian's archives"
        fi
    done
}

# Runs pytest. Some promises are times, such as half a second until a handler is told: what failed on a busy machine is
# tried a second time, by itself, and named at the end.
#   pytest_twice DIRECTORY PYTHON [ARGUMENT ...]
pytest_twice() {
    (
        cd "$1"
        "$2" -m pytest -n "$jobs" "${@:3}" && exit
        again=(--last-failed --last-failed-no-failures none)
        # `-q` is set in pytest.ini: a second one would leave the names of the tests out.
        "$2" -m pytest "${again[@]}" --collect-only "${@:3}" | grep :: | sed "s|^|$1/|" >>"$SECOND_LOOKS" || true
        "$2" -m pytest "${again[@]}" "${@:3}"
    )
}

for file in rust go node ruby php python conformance; do
    # shellcheck source=/dev/null
    . "scripts/test-clients/$file.sh"
done

# Runs functions one after the other, beside what the script does next. Most tests wait most of the time.
#   beside NAME FUNCTION ...
beside() {
    # A process group of its own can be ended as a whole.
    set -m
    (
        set +m
        trap - EXIT
        for function in "${@:2}"; do "$function"; done
    ) >"$notes/$1" 2>&1 &
    set +m
    names+=("$1") processes+=($!)
}

# Prints what those have printed, each by itself, and fails if one of them has failed. Those that failed come last.
wait_for_all() {
    local failed=() name
    while [ "${#names[@]}" != 0 ]; do
        if wait "${processes[0]}"; then cat "$notes/${names[0]}"; else failed+=("${names[0]}"); fi
        names=("${names[@]:1}") processes=("${processes[@]:1}")
    done
    for name in "${failed[@]}"; do cat "$notes/$name"; done
    [ "${#failed[@]}" = 0 ] || { echo "dq: FAILED: ${failed[*]}" >&2 && exit 1; }
}

# It compiles for minutes, with what the tests leave of the processors.
beside rust test_rust
part "languages"
scripts/fetch-languages.sh php-bookworm php-sid ruby-bookworm ruby-sid >/dev/null || true
beside php test_php
beside laravel test_laravel
beside ruby test_ruby
beside rails test_rails
beside python test_python test_frameworks test_python_package
beside go_and_node test_go test_node
wait_for_all
test_conformance
