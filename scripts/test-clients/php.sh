# The tests of the PHP client and its driver of Laravel, for scripts/test-clients.sh. They run on the oldest and the
# newest PHP that users of Debian have.
# shellcheck shell=bash

PHPS=(php-bookworm php-sid)
# The conformance suite drives the newest.
DRIVEN_PHP=$target/clients/php/php
# What PHPUnit says of a test that failed.
PHP_FAILURE='^[0-9]+\) .*::.*'

# Tests the client with one PHP.
#   test_php_client_on PHP
test_php_client_on() {
    local root
    root=$(dirname "$1")/root
    "$1" -r 'echo "dq: PHP ", PHP_VERSION, ", ext-redis ", phpversion("redis"), "\n";'
    find clients/php \( -name '*.php' -o -name dq-keeper \) -print0 | xargs -0 -n 1 -P "$jobs" "$1" -l >/dev/null
    if [ -e "$root/usr/bin/phpcs" ]; then
        "$1" "$root/usr/bin/phpcs" --standard=clients/php/phpcs.xml -q
    fi
    scripts/try-twice.sh "$PHP_FAILURE" "$1" "$root/usr/bin/phpunit" --do-not-cache-result \
        --bootstrap clients/php/tests/client/autoload.php clients/php/tests/client
    ln -sfn "$1" "$DRIVEN_PHP"
}

test_php() {
    part "PHP client"
    mkdir -p "$(dirname "$DRIVEN_PHP")"
    rm -f "$DRIVEN_PHP"
    on_each "the PHP client" test_php_client_on "${PHPS[@]}"
    if [ -e "$DRIVEN_PHP" ]; then
        plant php
    else
        leave_out "the PHP client: no PHP can be had"
    fi
}

# Tests the driver of Laravel with one PHP.
#   test_laravel_on PHP
test_laravel_on() {
    local phpunit=("$1" "$(dirname "$1")/root/usr/bin/phpunit")
    "$1" -r 'require "Illuminate/autoload.php";
        echo "dq: Laravel ", Illuminate\Foundation\Application::VERSION, " on PHP ", PHP_VERSION, "\n";'
    (
        cd clients/php/tests/laravel
        SHARED_CONNECTION=redis "${phpunit[@]}" SharedTest.php
        # Each file by itself; what it prints stays together.
        printf '%s\n' *Test.php |
            xargs -P "$jobs" -I FILE ../../../../scripts/try-twice.sh "$PHP_FAILURE" "${phpunit[@]}" FILE
    )
}

test_laravel() {
    part "Laravel"
    on_each "the driver of Laravel" test_laravel_on "${PHPS[@]}"
}
