#!/usr/bin/env bash
# Tests the adapters with the current and the previous minor release of each framework, and runs Dramatiq's own tests of a
# broker on ours. It installs packages into target/clients/versions, and takes some minutes.
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
        "$directory/bin/pip" install -q --disable-pip-version-check redis pytest pytest-xdist "$2" -e "$root/clients/python"
        touch "$directory/installed"
    fi
    echo "--- $2"
    "$directory/bin/python" -m pytest -n 2 "$1"
}

for version in 2.2.1 2.1.0; do
    try test_dramatiq.py "dramatiq==$version"
    source=$target/source-$version
    if [ ! -e "$source/done" ]; then
        mkdir -p "$source"
        "$python" -m pip download -q --disable-pip-version-check --no-binary :all: --no-deps --dest "$source" "dramatiq==$version"
        tar -xzf "$source"/dramatiq-*.tar.gz --strip-components 1 --directory "$source" --wildcards '*/tests/*'
        touch "$source/tests/__init__.py" "$source/done"
    fi
    echo "--- Dramatiq's own tests"
    (cd "$source" && PYTHONPATH=$here "$directory/bin/python" -m pytest -q -p upstream_dramatiq -c /dev/null --rootdir . \
        tests/test_{redis,actors,worker,callbacks,generic_actors,messages}.py)
done
for version in 0.13.0 0.12.6; do try test_taskiq.py "taskiq==$version"; done
if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 12))'; then
    for version in 6.1.3 6.0.10; do try test_django.py "django==$version"; done
else
    try test_django.py "django-tasks==0.12.0" # older ones have another interface
fi
