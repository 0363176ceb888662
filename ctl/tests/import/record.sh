#!/usr/bin/env bash
# Records what the real libraries write: ctl/tests/import/*.jsonl, which `make test` imports.
#   ctl/tests/import/record.sh [PYTHON] [NODE_FOLDER]
# PYTHON has the packages rq, celery and redis, and NODE_FOLDER the packages bullmq and ioredis; Sidekiq is the
# system's. `make test-import` installs them in target/import. The first line of a file has the version of the library.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
target=${CARGO_TARGET_DIR:-$here/../../../target}
python=$(realpath -s "${1:-$target/import/python/bin/python}")
node=$(realpath "${2:-$target/import/node}")
port=${PORT:-7391}

server=""
trap 'if [ -n "$server" ]; then kill "$server" 2>/dev/null || true; fi' EXIT
record() {
    local name=$1
    shift
    "${DQ_SERVER:-redis-server}" --port "$port" --bind 127.0.0.1 --save "" --appendonly no >/dev/null 2>&1 &
    server=$!
    until redis-cli -p "$port" PING >/dev/null 2>&1; do sleep 0.1; done
    { (cd "$node" && "$@" "$port") && "$python" "$here/save.py" "$port"; } >"$here/$name.jsonl.new"
    mv "$here/$name.jsonl.new" "$here/$name.jsonl"
    kill "$server"
    wait "$server" || true
    echo "$name.jsonl: $(head -n 1 "$here/$name.jsonl" | cut -c 1-40)"
}

record rq "$python" "$here/rq_queue.py"
record rq_ties "$python" "$here/rq_ties.py"
record celery "$python" "$here/celery_queue.py"
record bullmq node "$here/bullmq_queue.js"
record bullmq_ties node "$here/bullmq_ties.js"
record sidekiq ruby "$here/sidekiq_queue.rb"
