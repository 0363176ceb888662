# The tests of the Node client, for scripts/test-clients.sh.
# shellcheck shell=bash

# What Node's runner says of a test that failed.
NODE_FAILURE='^ *not ok [0-9]+ - .*'

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

test_node() {
    part "Node client"
    local node=$target/clients/node oldest=$target/clients/node-oldest found
    if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
        leave_out "the Node client: node and npm are not installed"
    elif ! node_packages "$node"; then
        leave_out "the Node client: its packages cannot be installed from npm"
    else
        [ -d clients/node/node_modules ] || ln -sfn "$node/node_modules" clients/node/node_modules
        (cd clients/node && npm run --silent build && npm run --silent lint &&
            ../../scripts/try-twice.sh "$NODE_FAILURE" npm --silent test)

        if ! found=$(oldest_node "$target/clients/node-18"); then
            leave_out "the Node client on Node 18: it cannot be installed from npm"
        elif ! node_packages "$oldest" ioredis@5.3 redis@5.0 @types/node@18.14.0 typescript@5.0; then
            leave_out "the Node client on Node 18: its packages cannot be installed from npm"
        else
            rm -rf "$oldest/dist" "$oldest/tests"
            cp -r clients/node/dist clients/node/tests clients/node/README.md "$oldest"
            PATH="$(dirname "$found"):$PATH" scripts/try-twice.sh "$NODE_FAILURE" \
                env --chdir "$oldest" node --test tests/
        fi
        plant node
    fi
}
