#!/usr/bin/env bash
# Tests dq_client.celery with the supported minor releases of Celery, with kombu's own tests of transports and with
# Celery's own integration tests. kombu_suite.py and upstream_celery.py list those that are left out.
#   clients/python/tests/frameworks/celery_versions.sh [VERSION ...]
# It needs PyPI, the module (DQ_MODULE, or scripts/find-module.sh debug) and a server (DQ_SERVER). It is not part of
# .ci/run.
set -euo pipefail
cd "$(dirname "$0")/../../../.."
target=${CARGO_TARGET_DIR:-target}
case $target in /*) ;; *) target=$PWD/$target ;; esac
DQ_MODULE=${DQ_MODULE:-$(scripts/find-module.sh debug)}
export DQ_MODULE
versions=("$@")
[ $# -gt 0 ] || versions=(5.5.3 5.6.3 5.7.0)

for version in "${versions[@]}"; do
    echo "--- Celery $version"
    directory=$target/clients/celery-$version
    if ! [ -e "$directory/t" ]; then
        rm -rf "$directory"
        python3 -m venv "$directory"
        "$directory/bin/pip" install -q pytest pytest-xdist pytest-rerunfailures pytest-timeout pytest-subtests \
            pydantic gevent \
            "celery[redis]==$version" "kombu==${version%.*}.*" -e clients/python
        kombu=$("$directory/bin/python" -c 'import kombu; print(kombu.__version__.split("rc")[0])')
        "$directory/bin/pip" download -q --no-binary :all: --no-deps -d "$directory" "kombu==$kombu"
        mkdir "$directory/kombu.new"
        tar -xzf "$directory/kombu-$kombu.tar.gz" --strip-components 1 -C "$directory/kombu.new"
        rm -rf "$directory/kombu.new/kombu" # The installed one is tested.
        mv "$directory/kombu.new" "$directory/kombu"
        "$directory/bin/pip" download -q --no-binary :all: --no-deps -d "$directory" "celery==$version"
        tar -xzf "$directory/celery-$version.tar.gz" --strip-components 1 -C "$directory" \
            "celery-$version/t" "celery-$version/pyproject.toml"
    fi
    (
        cd clients/python/tests/frameworks
        "$directory/bin/pip" list 2>/dev/null | grep -E '^(celery|kombu|redis) '
        "$directory/bin/python" -m pytest -p no:cacheprovider -q --tb=short -n "${TEST_THREADS:-3}" \
            test_celery.py test_celery_transport.py test_places.py
        KOMBU_SOURCE=$directory/kombu "$directory/bin/python" -m pytest -p no:cacheprovider -q --tb=short kombu_suite.py
        here=$PWD
        cd "$directory"
        PYTHONPATH=$here bin/python -m pytest -p upstream_celery -p celery.contrib.pytest -p no:cacheprovider \
            -q --tb=short \
            -n "${TEST_THREADS:-3}" --dist worksteal t/integration/test_{tasks,inspect,canvas}.py
    )
done
