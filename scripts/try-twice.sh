#!/usr/bin/env bash
# Runs tests, and prints what they say once they have ended. Tests that failed are run a second time: some promises are
# times, which a busy machine may miss. None is tried again in silence: the names of those that failed once are added
# to the file $SECOND_LOOKS, of those that failed twice to $FAILED_TWICE.
#   scripts/try-twice.sh PATTERN COMMAND [ARGUMENT ...]
# In what the runner says, PATTERN matches the name of a test that failed.
set -uo pipefail
pattern=$1 said=$(mktemp)
shift
trap 'rm -f "$said"' EXIT

"$@" >"$said" 2>&1 && cat "$said" && exit
cat "$said"
# A runner that ended otherwise, such as by a signal, names no test.
names=$(grep -oE "$pattern" "$said" | sort -u)
[ -n "$names" ] || names="$*"
echo "dq: a second look at: $*"
"$@" >"$said" 2>&1
code=$?
cat "$said"
if [ "$code" = 0 ]; then
    echo "$names" >>"$SECOND_LOOKS"
else
    again=$(grep -oE "$pattern" "$said" | sort -u)
    echo "${again:-$*}" >>"$FAILED_TWICE"
fi
exit "$code"
