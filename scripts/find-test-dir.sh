#!/usr/bin/env bash
# Prints the directory in which the servers of tests keep their files, and makes it: on a memory file system if the
# machine has one with room, so that no test waits for a disk, else in target/tmp.
#   scripts/find-test-dir.sh
# DQ_TEST_DIR: the directory to use instead.
set -euo pipefail
cd "$(dirname "$0")/.."

# The servers of all tests that run at the same time need a few hundred MB. A failed test keeps what it left.
ROOM_MB=2048

# Whether /dev/shm is a memory file system with room, from which programs may load the small libraries of tests.
memory_has_room() {
    local options free available
    options=$(awk '$2 == "/dev/shm" && $3 == "tmpfs" { print $4 }' /proc/mounts 2>/dev/null | tail -n 1)
    case ",$options," in ,, | *,ro,* | *,noexec,*) return 1 ;; esac
    [ -w /dev/shm ] || return 1
    free=$(df -Pk /dev/shm | awk 'NR == 2 { print int($4 / 1024) }')
    available=$(awk '$1 == "MemAvailable:" { print int($2 / 1024) }' /proc/meminfo)
    [ "$free" -ge $ROOM_MB ] && [ "$available" -ge $((2 * ROOM_MB)) ]
}

if [ -n "${DQ_TEST_DIR:-}" ]; then
    dir=$DQ_TEST_DIR
elif memory_has_room; then
    dir=/dev/shm/dq-tests-$(id -u)
else
    dir=${CARGO_TARGET_DIR:-target}/tmp
fi
mkdir -p "$dir"
cd "$dir" && pwd -P
