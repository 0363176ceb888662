#!/usr/bin/env bash
# Tests the clients in clients/: each one's own tests, then the conformance suite, which drives all of them.
#   scripts/test-clients.sh
# It needs the module (DQ_MODULE, or scripts/find-module.sh debug) and a server (DQ_SERVER). Packages are installed
# once, into target/clients; Go and redigo come from Debian, for root. What cannot run is named at the end, and is not a
# failure; so is each test that passed only when it was tried a second time. PLANTED=2/3: plants only the second third
# of the faults.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
case $target in /*) ;; *) target=$PWD/$target ;; esac
DQ_MODULE=${DQ_MODULE:-$(scripts/find-module.sh debug)}
DQ_SERVER=$(scripts/find-server.sh)
# The servers of all tests keep their files there.
TMPDIR=$(scripts/find-test-dir.sh)
export DQ_MODULE DQ_SERVER TMPDIR
echo "dq: the servers of the tests keep their files in $TMPDIR"
jobs=${TEST_THREADS:-3}
left_out=()
second_looks=$(mktemp)
planted=(python)

# Prints the heading of a part, and after how many seconds it begins.
part() {
    echo "--- $1 (after $SECONDS s)"
}

name_second_looks() {
    sed 's/^/dq: NEEDED A SECOND LOOK: /' "$second_looks"
    rm "$second_looks"
}
trap name_second_looks EXIT

# Runs pytest. Some promises are times, such as half a second until a handler is told: what failed on a busy machine is
# tried a second time, by itself, and named at the end.
#   pytest_twice DIRECTORY PYTHON [ARGUMENT ...]
pytest_twice() {
    (
        cd "$1"
        "$2" -m pytest -n "$jobs" "${@:3}" && exit
        again=(--last-failed --last-failed-no-failures none)
        # `-q` is set in pytest.ini: a second one would leave the names of the tests out.
        { "$2" -m pytest "${again[@]}" --collect-only "${@:3}" | grep :: | sed "s|^|$1/|" >>"$second_looks"; } || true
        "$2" -m pytest "${again[@]}" "${@:3}"
    )
}

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

# Has `go` find the source of redigo: in the proxy for modules, or in Debian's package, by a workspace in target/.
find_redigo() {
    local debian=/usr/share/gocode/src/github.com/gomodule/redigo
    (cd clients/go && GOFLAGS=-mod=readonly go mod download github.com/gomodule/redigo 2>/dev/null) && return 0
    [ -d "$debian" ] || debian_install golang-github-gomodule-redigo-dev || return 1
    rm -rf "$1/redigo" && mkdir -p "$1/redigo" && cp -r "$debian/redis" "$1/redigo" && rm -f "$1"/redigo/redis/*_test.go
    printf 'module github.com/gomodule/redigo\n\ngo 1.14\n' >"$1/redigo/go.mod" # without what only its tests need
    printf 'go 1.19\n\nuse %s\n\nreplace github.com/gomodule/redigo => %s\n' "$PWD/clients/go" "$1/redigo" >"$1/go.work"
    export GOWORK=$1/go.work
}

# Makes a workspace with the adapter for go-redis, if the proxy for modules, or the cache of modules, has that.
find_goredis() {
    (cd clients/go/goredis && GOWORK=off GOFLAGS=-mod=readonly go mod download github.com/redis/go-redis/v9 \
        github.com/cespare/xxhash/v2 github.com/dgryski/go-rendezvous 2>/dev/null) || return 1
    printf 'go 1.19\n\nuse (\n%s\n%s\n)\n' "$PWD/clients/go" "$PWD/clients/go/goredis" >"$1/goredis.work"
    grep -s ^replace "${GOWORK:-}" >>"$1/goredis.work" || true
}

# Builds what the conformance suite drives.
#   build_go ADAPTER DIRECTORY
build_go() {
    local program
    for program in worker push calls; do
        go vet "conformance/$program.go" "conformance/$1.go"
        go build -o "$2/$program" "conformance/$program.go" "conformance/$1.go"
    done
}

debian_install() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null &&
        apt-get install -qq -y --no-install-recommends "$@" >/dev/null
}

part "Go client"
go=$target/clients/go
mkdir -p "$go"
if ! command -v go >/dev/null && ! debian_install golang-go; then
    left_out+=("the Go client: install Go 1.19 or newer")
elif ! find_redigo "$go"; then
    left_out+=("the Go client: neither the proxy for modules nor Debian's golang-github-gomodule-redigo-dev has redigo")
else
    unformatted=$(gofmt -l clients/go benches/workers/go)
    [ -z "$unformatted" ] || { echo "gofmt -w $unformatted" >&2 && exit 1; }
    (
        cd clients/go
        go vet ./...
        go vet ../../benches/workers/go/worker.go
        build_go redigo "$go"
        go test ./...
    )
    rm -rf "$go/goredis"
    if find_goredis "$go"; then
        (cd clients/go && export GOWORK=$go/goredis.work &&
            go vet ./goredis && go test ./goredis && build_go goredis "$go/goredis")
    else
        left_out+=("the adapter for go-redis: the proxy for modules does not have it")
    fi
    if command -v cc >/dev/null; then
        (cd clients/go && go test -race ./...)
    else
        left_out+=("the Go client with its race detector: it needs a C compiler")
    fi
    planted+=(go)
fi

# Installs the packages of the Node client, again if they have changed.
#   node_packages DIRECTORY [PACKAGE@VERSION ...]
node_packages() {
    local directory=$1
    shift
    cmp -s clients/node/package.json "$directory/installed" && return 0
    rm -rf "$directory"
    mkdir -p "$directory"
    cp clients/node/package.json "$directory"
    (cd "$directory" && npm install --silent --no-package-lock --ignore-scripts "$@") &&
        cp clients/node/package.json "$directory/installed"
}

# The oldest Node that is supported, from npm.
#   oldest_node DIRECTORY
oldest_node() {
    local package
    package=node-$(node -p 'process.platform + "-" + process.arch')
    [ -x "$1/node_modules/$package/bin/node" ] ||
        npm install --silent --no-package-lock --prefix "$1" "$package@18" >/dev/null || return 1
    echo "$1/node_modules/$package/bin/node"
}

part "Node client"
node=$target/clients/node
if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
    left_out+=("the Node client: node and npm are not installed")
elif ! node_packages "$node"; then
    left_out+=("the Node client: its packages cannot be installed from npm")
else
    [ -d clients/node/node_modules ] || ln -sfn "$node/node_modules" clients/node/node_modules
    (cd clients/node && npm run --silent build && npm run --silent lint && npm --silent test)

    oldest=$target/clients/node-oldest
    if ! found=$(oldest_node "$target/clients/node-18"); then
        left_out+=("the Node client on Node 18: it cannot be installed from npm")
    elif ! node_packages "$oldest" ioredis@5.3 redis@5.0 @types/node@18.14.0 typescript@5.0; then
        left_out+=("the Node client on Node 18: its packages cannot be installed from npm")
    else
        rm -rf "$oldest/dist" "$oldest/tests"
        cp -r clients/node/dist clients/node/tests clients/node/README.md "$oldest"
        (cd "$oldest" && PATH="$(dirname "$found"):$PATH" node --test tests/)
    fi
    planted+=(node)
fi

# shellcheck source=scripts/test-ruby.sh
. scripts/test-ruby.sh
test_rubies

# The oldest and the newest PHP that users of Debian have, which the script fetches.
#   test_php DIRECTORY
test_php() {
    local name php root unit
    for name in php-bookworm php-sid; do
        php=$(scripts/fetch-languages.sh "$name" | cut -f 2) || true
        if [ -z "$php" ]; then
            left_out+=("the PHP client on $name: its packages cannot be downloaded from Debian's archives")
            continue
        fi
        root=$(dirname "$php")/root
        "$php" -r 'echo "dq: PHP ", PHP_VERSION, ", ext-redis ", phpversion("redis"), "\n";'
        find clients/php \( -name '*.php' -o -name dq-keeper \) -print0 |
            xargs -0 -n 1 -P "$jobs" "$php" -l >/dev/null
        if [ -e "$root/usr/bin/phpcs" ]; then
            "$php" "$root/usr/bin/phpcs" --standard=clients/php/phpcs.xml -q
        fi
        unit=(--do-not-cache-result --bootstrap clients/php/tests/client/autoload.php clients/php/tests/client)
        "$php" "$root/usr/bin/phpunit" "${unit[@]}"
        # The conformance suite drives the newest.
        ln -sfn "$php" "$1/php"
    done
}

part "PHP client"
php=$target/clients/php
mkdir -p "$php"
rm -f "$php/php"
test_php "$php"
if [ -e "$php/php" ]; then
    planted+=(php)
else
    left_out+=("the PHP client: no PHP can be had")
fi

# A workspace of its own, which `make lint` and `make test-client` do not know.
part "apalis"
apalis=clients/rust/apalis/Cargo.toml
if ! cargo fetch --locked --quiet --manifest-path "$apalis"; then
    left_out+=("the backend of apalis: its dependencies cannot be downloaded")
else
    cargo fmt --manifest-path "$apalis" -- --check
    CARGO_TARGET_DIR=$target cargo clippy --locked --quiet --manifest-path "$apalis" --all-targets -- -D warnings
    CARGO_TARGET_DIR=$target cargo test --locked --quiet --manifest-path "$apalis" -- --test-threads "$jobs"
fi

part "Python client"
python=$target/clients/python
if ! environment "$python" python3 clients/conformance/requirements.txt; then
    left_out+=("the Python client and the conformance suite: their packages cannot be installed from PyPI")
else
    (cd clients/python && "$python/bin/mypy" &&
        "$python/bin/ruff" check . ../conformance && "$python/bin/ruff" format --check . ../conformance)
    pytest_twice clients/python/tests "$python/bin/python"

    oldest=$target/clients/python-oldest
    if ! found=$(oldest_python); then
        left_out+=("the Python client on Python 3.9: it is not installed")
    elif ! environment "$oldest" "$found" clients/conformance/requirements-oldest.txt; then
        left_out+=("the Python client on Python 3.9: redis-py 5.0 cannot be installed from PyPI")
    else
        pytest_twice clients/python/tests "$oldest/bin/python"
    fi

    part "Python frameworks"
    frameworks=clients/python/tests/frameworks
    if ! environment "$target/clients/frameworks" python3 "$frameworks/requirements.txt"; then
        left_out+=("the adapters for frameworks: the frameworks cannot be installed from PyPI")
    else
        pytest_twice "$frameworks" "$target/clients/frameworks/bin/python"
    fi
    if ! found=$(newer_python); then
        left_out+=("the tasks of Django 6: it needs Python 3.12")
    elif ! environment "$target/clients/django" "$found" "$frameworks/requirements-django.txt"; then
        left_out+=("the tasks of Django 6: it cannot be installed from PyPI")
    else
        pytest_twice "$frameworks" "$target/clients/django/bin/python" test_django.py
    fi

    part "Python package"
    dist=$target/clients/dist
    rm -rf "$dist"
    "$python/bin/python" -m build --no-isolation --outdir "$dist" clients/python >/dev/null
    "$python/bin/python" - "$dist"/*.whl "$dist"/*.tar.gz <<'EOF'
import sys, tarfile, zipfile
wheel, source = sys.argv[1:]
names = zipfile.ZipFile(wheel).namelist() + ["/".join(name.split("/")[2:]) for name in tarfile.open(source).getnames()]
for name in ("dq_client/py.typed", "dq_client/worker/lane.py", "dq_client/django/management/commands/dq_worker.py"):
    assert names.count(name) == 2, f"{name} is not in the wheel and in the source distribution: {names}"
EOF

    # `make test-client` and `make test-ctl` have the tests of the Rust client and of dqctl themselves.
    part "Rust programs"
    scripts/build-tests.sh --quiet
    cargo test --locked --quiet -p dq-client --features otel --test it -- traces
    mkdir -p "$target/clients/rust"
    ln -sf "$target/debug/examples/worker" "$target/debug/examples/push" "$target/clients/rust/"
    ln -sf "$target/debug/dqctl" "$target/clients/"

    part "conformance"
    pytest_twice clients/conformance "$python/bin/python"
    if [ -x "$go/goredis/worker" ]; then
        DQ_PROGRAMS=$go/goredis pytest_twice clients/conformance "$python/bin/python" --client go
    fi
    for handlers in plain blocking; do
        DQ_HANDLERS=$handlers pytest_twice clients/conformance "$python/bin/python" --client rust
    done
    part "planted faults"
    "$python/bin/python" clients/conformance/planted.py --turn "${PLANTED:-1/1}" "${planted[@]}"
    for client in python node go php ruby rust dqctl; do
        missing="the conformance of the $client client: it has no programs, or what runs them is missing"
        "$python/bin/python" - "$client" <<'EOF' || left_out+=("$missing")
import sys
sys.path.insert(0, "clients/conformance")
import program
sys.exit(sys.argv[1] not in program.clients())
EOF
    done
fi

part "Laravel"
if [ -x "$target/debug/dqctl" ]; then
    export DQCTL=$target/debug/dqctl
else
    left_out+=("jobs of Laravel that dqctl imports: dqctl was not built")
fi
for name in php-bookworm php-sid; do
    php=$(scripts/fetch-languages.sh "$name" | cut -f 2) || true
    if [ -z "$php" ]; then
        left_out+=("the driver of Laravel on $name: its packages cannot be downloaded from Debian's archives")
        continue
    fi
    "$php" -r 'require "Illuminate/autoload.php";
        echo "dq: Laravel ", Illuminate\Foundation\Application::VERSION, " on PHP ", PHP_VERSION, "\n";'
    (
        cd clients/php/tests/laravel
        phpunit=("$php" "$(dirname "$php")/root/usr/bin/phpunit")
        SHARED_CONNECTION=redis "${phpunit[@]}" SharedTest.php
        # Each file by itself; what it prints stays together.
        printf '%s\n' *Test.php |
            xargs -P "$jobs" -I FILE bash -c 'out=$("$@" 2>&1); code=$?; echo "$out"; exit $code' _ "${phpunit[@]}" FILE
    )
done

for what in "${left_out[@]+"${left_out[@]}"}"; do
    echo "dq: NOT TESTED: $what"
done
