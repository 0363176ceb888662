# The tests of the Go client, for scripts/test-clients.sh.
# shellcheck shell=bash

# What Go says of a test that failed.
GO_FAILURE='^--- FAIL: [A-Za-z0-9_]+'

# Runs tests of the Go client.
#   go_test [ARGUMENT ...]
go_test() {
    ../../scripts/try-twice.sh "$GO_FAILURE" go test "$@"
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

test_go() {
    part "Go client"
    local go=$target/clients/go unformatted
    mkdir -p "$go" && rm -f "$go/go.work"
    if ! command -v go >/dev/null && ! debian_install golang-go; then
        leave_out "the Go client: install Go 1.19 or newer"
    elif ! find_redigo "$go"; then
        leave_out "the Go client: redigo is neither in the proxy for modules nor in golang-github-gomodule-redigo-dev"
    else
        unformatted=$(gofmt -l clients/go benches/workers/go)
        [ -z "$unformatted" ] || { echo "gofmt -w $unformatted" >&2 && exit 1; }
        (
            cd clients/go
            go vet ./...
            go vet ../../benches/workers/go/worker.go
            build_go redigo "$go"
            go_test ./...
        )
        rm -rf "$go/goredis"
        if find_goredis "$go"; then
            (cd clients/go && export GOWORK=$go/goredis.work &&
                go vet ./goredis && go_test ./goredis && build_go goredis "$go/goredis")
        else
            leave_out "the adapter for go-redis: the proxy for modules does not have it"
        fi
        if command -v cc >/dev/null; then
            (cd clients/go && go_test -race ./...)
        else
            leave_out "the Go client with its race detector: it needs a C compiler"
        fi
        plant go
    fi
}
