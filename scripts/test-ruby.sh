# The part of test-clients.sh that tests the Ruby client, which sources it. It appends to the lists `left_out` and
# `planted` and sets DQ_RUBY, with which the conformance suite runs: the newest Ruby, or that of this machine.
# shellcheck shell=bash

# Tests the client with one Ruby.
#   test_ruby RUBY
test_ruby() {
    "$1" -e 'puts "dq: Ruby #{RUBY_VERSION}, redis-client #{Gem.loaded_specs["redis-client"]&.version}"' -r redis-client
    (cd clients/ruby && "$1" test/all.rb)
}

# Has rubocop look at the client. That of the oldest suite does not change.
#   lint_ruby LAUNCHER
lint_ruby() {
    (cd clients/ruby && "$1" "$(dirname "$1")/root/usr/bin/rubocop" --format quiet)
}

# Prints the launcher of a Ruby that can be fetched.
#   fetched_ruby NAME
fetched_ruby() {
    scripts/fetch-languages.sh "$1" | cut -f 2
}

# Tests Active Job and Sidekiq with one Ruby, on other adapters and on dq.
#   test_frameworks RUBY
test_frameworks() {
    local runs=(
        "DQ_TEST_ADAPTER=async jobs_test.rb" "DQ_TEST_ADAPTER=dq jobs_test.rb"
        "DQ_TEST_BRIDGE=0 sidekiq_test.rb" "DQ_TEST_BRIDGE=1 sidekiq_test.rb"
        dq_jobs_test.rb rails_test.rb sidekiq_bridge_test.rb sidekiq_page_test.rb pages_test.rb
    )
    "$1" -r rails/version -r sidekiq/version -e 'puts "dq: Rails #{Rails.version}, Sidekiq #{Sidekiq::VERSION}"'
    (
        cd clients/ruby/test/frameworks
        # Most of the time they wait, so several run at once; what each prints stays together.
        printf '%s\n' "${runs[@]}" | RUBY=$1 xargs -P "$jobs" -I RUN bash -c \
            'set -- RUN; out=$(env "${@:1:$#-1}" "$RUBY" "${@: -1}" 2>&1); code=$?; echo "$out"; exit $code'
    )
}

test_rubies() {
    local oldest newest name
    part "Ruby client"
    if oldest=$(fetched_ruby ruby-bookworm) && [ -n "$oldest" ]; then
        lint_ruby "$oldest"
        test_ruby "$oldest"
    else
        left_out+=("the Ruby client on the oldest Ruby, and rubocop: they cannot be downloaded from Debian's archives")
    fi
    if newest=$(fetched_ruby ruby-sid) && [ -n "$newest" ]; then
        test_ruby "$newest"
    elif newest=$(command -v ruby) && ruby -r redis-client -r minitest -e 1 2>/dev/null; then
        left_out+=("the Ruby client on the newest Ruby: it cannot be downloaded from Debian's archives")
        test_ruby "$newest"
    else
        left_out+=("the Ruby client: no Ruby with redis-client can be downloaded, and none is installed")
        return
    fi
    export DQ_RUBY=$newest
    planted+=(ruby)

    part "Rails and Sidekiq"
    if cargo build --locked --quiet -p dqctl; then
        export DQ_CTL=$target/debug/dqctl
    else
        left_out+=("jobs that are imported from Sidekiq: dqctl cannot be built")
    fi
    for name in ruby-bookworm ruby-sid; do
        if newest=$(fetched_ruby "$name") && [ -n "$newest" ]; then
            test_frameworks "$newest"
        else
            left_out+=("Rails and Sidekiq of $name: they cannot be downloaded from Debian's archives")
        fi
    done
}
