#!/usr/bin/env bash
# Runs `cargo test` with these arguments, and looks a second time, one by one, at tests that failed: sentinels, clusters
# and workers have times that a busy machine may miss. None is tried again in silence: the last lines name each.
#   scripts/run-tests.sh [OPTION of cargo test ...] -- OPTION of the tests [...]
set -uo pipefail
cd "$(dirname "$0")/.."
# More are no accident.
most=10
said=$(mktemp)
trap 'rm -f "$said"' EXIT

options=()
for option in "$@"; do
    [ "$option" != -- ] || break
    options+=("$option")
done

cargo test --locked --no-fail-fast "$@" 2>&1 | tee "$said"
code=${PIPESTATUS[0]}
[ "$code" != 0 ] || exit 0

# The names of the tests that failed, from the list before each result.
mapfile -t names < <(awk '
    /^failures:$/ { listing = 1; count = 0; next }
    /^test result: FAILED/ { for (i = 0; i < count; i++) print found[i]; listing = 0; next }
    listing && /^    [^ ]/ { found[count++] = substr($0, 5) }
' "$said" | sort -u)
# A program of tests that was ended, such as by its limit of time, lists none.
ended=$(sed -n 's/^error: \([0-9]*\) targets\{0,1\} failed:$/\1/p' "$said")
listed=$(grep -c '^test result: FAILED' "$said")
if [ "${#names[@]}" = 0 ] || [ "${#names[@]}" -gt $most ] || [ "$ended" != "$listed" ]; then
    [ "${#names[@]}" = 0 ] || printf 'dq: FAILED: %s\n' "${names[@]}"
    exit "$code"
fi

result=0 notes=""
for name in "${names[@]}"; do
    echo "dq: a second look at: $name"
    cargo test --locked "${options[@]}" -- --exact "$name" 2>&1 | tee "$said"
    # Without a test of that name cargo succeeds, too.
    if [ "${PIPESTATUS[0]}" = 0 ] && grep -q '^running 1 test' "$said"; then
        notes+="dq: NEEDED A SECOND LOOK: $name"$'\n'
    else
        notes+="dq: FAILED TWICE: $name"$'\n'
        result=1
    fi
done
printf '%s' "$notes"
exit $result
