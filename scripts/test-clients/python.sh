# The tests of the Python client and of its adapters for frameworks, for scripts/test-clients.sh.
# shellcheck shell=bash

# Makes a virtual environment, again if its requirements have changed.
#   environment DIRECTORY PYTHON REQUIREMENTS
environment() {
    cmp -s "$3" "$1/installed" && return 0
    rm -rf "$1"
    "$2" -m venv "$1" &&
        "$1/bin/pip" install -q --disable-pip-version-check -r "$3" -e clients/python &&
        cp "$3" "$1/installed"
}

# A Python that is new enough for Django 6, if it is installed.
newer_python() {
    local found
    local pyenv=${PYENV_ROOT:-${HOME:-/root}/.pyenv} is_new='import sys, venv; sys.exit(sys.version_info < (3, 12))'
    for found in python3.14 python3.13 python3.12 "$pyenv"/versions/3.1[2-9].*/bin/python3; do
        if found=$(command -v "$found") && "$found" -c "$is_new" 2>/dev/null; then
            echo "$found" && return
        fi
    done
    return 1
}

# The oldest Python that is supported, if it is installed.
oldest_python() {
    local found
    local pyenv=${PYENV_ROOT:-${HOME:-/root}/.pyenv}
    for found in "$(command -v python3.9 || true)" "$pyenv"/versions/3.9.*/bin/python3.9; do
        if [ -n "$found" ] && "$found" -c 'import venv' 2>/dev/null; then echo "$found" && return; fi
    done
    return 1
}

# Where the environment with the client and the conformance suite is.
python=$target/clients/python

test_python() {
    local oldest=$target/clients/python-oldest found
    part "Python client"
    if ! environment "$python" python3 clients/conformance/requirements.txt; then
        leave_out "the Python client and the conformance suite: their packages cannot be installed from PyPI"
        return
    fi
    plant python
    (cd clients/python && "$python/bin/mypy" &&
        "$python/bin/ruff" check . ../conformance && "$python/bin/ruff" format --check . ../conformance)
    pytest_twice clients/python/tests "$python/bin/python"

    if ! found=$(oldest_python); then
        leave_out "the Python client on Python 3.9: it is not installed"
    elif ! environment "$oldest" "$found" clients/conformance/requirements-oldest.txt; then
        leave_out "the Python client on Python 3.9: redis-py 5.0 cannot be installed from PyPI"
    else
        pytest_twice clients/python/tests "$oldest/bin/python"
    fi
}

test_frameworks() {
    local frameworks=clients/python/tests/frameworks found
    part "Python frameworks"
    if ! environment "$target/clients/frameworks" python3 "$frameworks/requirements.txt"; then
        leave_out "the adapters for frameworks: the frameworks cannot be installed from PyPI"
    else
        pytest_twice "$frameworks" "$target/clients/frameworks/bin/python"
    fi
    if ! found=$(newer_python); then
        leave_out "the tasks of Django 6: it needs Python 3.12"
    elif ! environment "$target/clients/django" "$found" "$frameworks/requirements-django.txt"; then
        leave_out "the tasks of Django 6: it cannot be installed from PyPI"
    else
        pytest_twice "$frameworks" "$target/clients/django/bin/python" test_django.py
    fi
}

test_python_package() {
    local dist=$target/clients/dist
    # It is named already if it cannot be installed.
    [ -x "$python/bin/python" ] || return 0
    part "Python package"
    rm -rf "$dist"
    "$python/bin/python" -m build --no-isolation --outdir "$dist" clients/python >/dev/null
    "$python/bin/python" - "$dist"/*.whl "$dist"/*.tar.gz <<'END'
import sys, tarfile, zipfile
wheel, source = sys.argv[1:]
names = zipfile.ZipFile(wheel).namelist() + ["/".join(name.split("/")[2:]) for name in tarfile.open(source).getnames()]
for name in ("dq_client/py.typed", "dq_client/worker/lane.py", "dq_client/django/management/commands/dq_worker.py"):
    assert names.count(name) == 2, f"{name} is not in the wheel and in the source distribution: {names}"
END
}
