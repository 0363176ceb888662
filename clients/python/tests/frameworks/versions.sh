#!/usr/bin/env bash
# Tests the adapters with the current and the previous minor release of each framework, and runs the frameworks' own
# tests of brokers on ours: upstream_NAME.py lists those that are left out. It installs packages into
# target/clients/versions, and takes some minutes. celery_versions.sh is the same for Celery.
#   versions.sh [PYTHON]      by default python3; Django 6 is tested with 3.12 and newer, django-tasks with older ones
set -euo pipefail
cd "$(dirname "$0")"
here=$PWD
root=$(git rev-parse --show-toplevel)
target=${CARGO_TARGET_DIR:-$root/target}/clients/versions
python=${1:-python3}
mkdir -p "$target"

# Runs a test file with a version.
#   try FILE PACKAGE==VERSION
try() {
    directory=$target/$($python -c 'import platform; print(platform.python_version())')-$2
    if [ ! -e "$directory/installed" ]; then
        "$python" -m venv "$directory"
        "$directory/bin/pip" install -q --disable-pip-version-check redis pytest pytest-xdist anyio "$2" \
            -e "$root/clients/python"
        touch "$directory/installed"
    fi
    echo "--- $2"
    "$directory/bin/python" -m pytest -n 2 "$1" test_places.py
}

# Unpacks the tests of a source distribution into $source, and says so.
#   own_tests PACKAGE==VERSION FOLDER
own_tests() {
    source=$target/source-$1
    if [ ! -e "$source/done" ]; then
        mkdir -p "$source"
        "$python" -m pip download -q --disable-pip-version-check --no-binary :all: --no-deps --dest "$source" "$1"
        tar -xzf "$source"/*.tar.gz --strip-components 1 --directory "$source" --wildcards "*/$2/*"
        touch "$source/tests/__init__.py" "$source/done"
    fi
    echo "--- $1: its own tests"
}

for version in 2.2.1 2.1.0; do
    try test_dramatiq.py "dramatiq==$version"
    own_tests "dramatiq==$version" tests
    (cd "$source" && PYTHONPATH=$here "$directory/bin/python" -m pytest -q -p upstream_dramatiq -c /dev/null \
        --rootdir . \
        tests/test_{redis,actors,worker,callbacks,generic_actors,messages}.py)
done
for version in 0.13.0 0.12.6; do
    try test_taskiq.py "taskiq==$version"
    own_tests "taskiq==$version" tests
    (cd "$source" && PYTHONPATH=$here "$directory/bin/python" -m pytest -q -p upstream_taskiq -c /dev/null --rootdir . \
        -o anyio_mode=auto tests/brokers/test_inmemory.py tests/middlewares/test_task_retry.py \
        tests/depends/test_progress_tracker.py \
        tests/test_{requeue,retry_task,exceptions_flow}.py)
done
if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 12))'; then
    for version in 6.1.3 6.0.10; do
        try test_django.py "django==$version"
        own_tests "django==$version" tests/tasks
        (cd "$source/tests" && PYTHONPATH=. "$directory/bin/python" "$here/upstream_django.py" \
            tasks dummy_backend immediate_backend)
    done
else
    try test_django.py "django-tasks==0.12.0" # older ones have another interface
fi
