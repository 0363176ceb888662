#!/usr/bin/env bash
# Keeps the golden files of a release: copies those of the format that this version writes into a folder of the
# release's name, which tests read and nothing writes again. Part of every release, before its tag.
#   scripts/freeze-golden.sh VERSION            such as 0.2.0
#   scripts/freeze-golden.sh --again VERSION    replaces the copy, as long as the release is not tagged
set -euo pipefail
cd "$(dirname "$0")/../tests/golden"

die() {
    echo "dq: $*" >&2
    exit 1
}

again=no
if [ "${1:-}" = --again ]; then again=yes && shift; fi
version=${1:-}
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || die "usage: scripts/freeze-golden.sh [--again] VERSION, such as 0.2.0"
! git rev-parse --quiet --verify "refs/tags/v$version" >/dev/null ||
    die "v$version is tagged: its files are never changed"
[ ! -e "v$version" ] || [ "$again" = yes ] || die "tests/golden/v$version exists; --again replaces it"

format=$(sed -n 's/^pub const VERSION: u8 = \([0-9]*\).*/\1/p' ../../queue/src/wire/mod.rs)
[ -d "v$format" ] || die "queue/src/wire/mod.rs names no format version that has golden files"
rm -rf "v$version"
cp -r "v$format" "v$version"
echo "dq: tests/golden/v$version holds the golden files of format version $format."
echo "dq: now name v$version in RELEASES in queue/tests/model/frozen.rs, with the hash that this test prints:"
echo "    cargo test --locked -p dq-queue --test model frozen"
