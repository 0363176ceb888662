# The tests of the Ruby client, of Active Job, Rails and Sidekiq on it, for scripts/test-clients.sh. They run on the
# oldest and the newest Ruby that users of Debian have. The conformance suite drives the newest, or else that of this
# machine.
# shellcheck shell=bash

RUBIES=(ruby-bookworm ruby-sid)
# What minitest says of a test that failed.
RUBY_FAILURE='^[A-Za-z:]+#test_[a-z0-9_]+'

# Tests the client with one Ruby.
#   test_ruby_client_on RUBY
test_ruby_client_on() {
    "$1" -e 'puts "dq: Ruby #{RUBY_VERSION}, redis-client #{Gem.loaded_specs["redis-client"]&.version}"' -r redis-client
    scripts/try-twice.sh "$RUBY_FAILURE" "$1" clients/ruby/test/all.rb
}

test_ruby() {
    local oldest newest
    part "Ruby client"
    if oldest=$(fetched ruby-bookworm) && [ -n "$oldest" ]; then
        # This rubocop does not change: the suite is the oldest.
        (cd clients/ruby && "$oldest" "$(dirname "$oldest")/root/usr/bin/rubocop" --format quiet)
        test_ruby_client_on "$oldest"
    else
        leave_out "the Ruby client on the oldest Ruby, and rubocop: they cannot be downloaded from Debian's archives"
    fi
    if newest=$(fetched ruby-sid) && [ -n "$newest" ]; then
        test_ruby_client_on "$newest"
    elif newest=$(command -v ruby) && ruby -r redis-client -r minitest -e 1 2>/dev/null; then
        leave_out "the Ruby client on the newest Ruby: it cannot be downloaded from Debian's archives"
        test_ruby_client_on "$newest"
    else
        leave_out "the Ruby client: no Ruby with redis-client can be downloaded, and none is installed"
        return
    fi
    plant ruby
}

# Tests Active Job and Sidekiq with one Ruby, on other adapters and on dq.
#   test_rails_on RUBY
test_rails_on() {
    local runs=(
        "DQ_TEST_ADAPTER=async jobs_test.rb" "DQ_TEST_ADAPTER=dq jobs_test.rb"
        "DQ_TEST_BRIDGE=0 sidekiq_test.rb" "DQ_TEST_BRIDGE=1 sidekiq_test.rb"
        dq_jobs_test.rb rails_test.rb sidekiq_bridge_test.rb sidekiq_page_test.rb pages_test.rb
    )
    "$1" -r rails/version -r sidekiq/version -e 'puts "dq: Rails #{Rails.version}, Sidekiq #{Sidekiq::VERSION}"'
    (
        cd clients/ruby/test/frameworks
        # Each run by itself; what it prints stays together.
        printf '%s\n' "${runs[@]}" | RUBY=$1 FAILURE=$RUBY_FAILURE xargs -P "$jobs" -I RUN bash -c \
            'set -- RUN; ../../../../scripts/try-twice.sh "$FAILURE" env "${@:1:$#-1}" "$RUBY" "${@: -1}"'
    )
}

test_rails() {
    part "Rails and Sidekiq"
    on_each "Rails and Sidekiq" test_rails_on "${RUBIES[@]}"
}
