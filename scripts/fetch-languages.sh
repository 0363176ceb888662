#!/usr/bin/env bash
# Downloads languages, with the frameworks that the clients are tested on, from the archives of Debian into a cache
# directory, and prints one line for each:
#   NAME <tab> PATH
#   scripts/fetch-languages.sh [NAME ...]      all if no name is given; `--names` lists the names
# PATH takes the arguments of php or ruby, and finds all extensions and libraries of the packages. Their programs are in
# ROOT/usr/bin, where ROOT is the directory `root` beside PATH: PATH ROOT/usr/bin/phpunit. Nothing is installed.
set -euo pipefail

# The name, the suite of Debian, the language, and the packages. Users know these versions by their suites.
php='php-cli php-redis php-predis php-mbstring php-xml php-sqlite3 phpunit php-laravel-framework'
ruby='ruby rails ruby-sidekiq ruby-minitest'
languages="
php-bookworm   bookworm  php   $php php-codesniffer
php-trixie     trixie    php   $php
php-sid        sid       php   $php
ruby-bookworm  bookworm  ruby  $ruby rubocop
ruby-trixie    trixie    ruby  $ruby ruby-redis-client
ruby-sid       sid       ruby  $ruby ruby-redis-client
"

names() { awk 'NF { print $1 }' <<<"$languages"; }
if [ "${1:-}" = --names ]; then
    names
    exit
fi

. "$(dirname "$0")/debian-suites.sh"

# Writes a php.ini with all extensions in the order of their priorities, and prints the lines of a launcher.
#   launch_php NAME LAUNCHER
launch_php() {
    local root=$cache/$1/root ini=$cache/$1/php.ini program extensions
    program=$(basename "$(find "$root/usr/bin" -regex '.*/php[0-9]+\.[0-9]+' | sort | tail -n 1)")
    extensions=$(dirname "$(find "$root/usr/lib/php" -name redis.so)")
    {
        printf 'extension_dir = "%s"\ninclude_path = ".:%s"\nmemory_limit = 512M\n' "$extensions" "$root/usr/share/php"
        # As in Debian, 20 is the priority of those that do not say one, such as redis; it needs igbinary.
        find "$root"/usr/share/php?.* "$root/etc/php" -name '*.ini' -exec awk '
            FNR == 1 { priority = 20 }
            /^; *priority=/ { sub(/.*=/, ""); priority = $0 }
            /^(zend_)?extension *=/ { print priority, /redis/, $0 }' {} + | sort -n -k 1 -k 2 | cut -d ' ' -f 3-
    } >"$ini"
    # Debian's autoloaders name each other by their absolute paths.
    grep -rlZ '/usr/share/php/' "$root/usr/share/php" "$root/usr/bin/phpunit" |
        xargs -0 sed -i "s#\(['\"]\)/usr/share/php/#\1$root/usr/share/php/#g"
    # Without the directory of this machine's own settings. `php -n` finds no settings, as everywhere. The name of the
    # launcher becomes PHP_BINARY.
    printf 'export PHPRC="%s" PHP_INI_SCAN_DIR=\nexec %s "$@"\n' "$ini" "$(under_own_loader "$1" "$program" "$2")"
}

# Adds redis-client, which Debian has since trixie, to an older suite. It is written in Ruby, so its package runs there.
#   add_redis_client NAME
add_redis_client() {
    local apt=() dir=$cache/$1/packages deb
    use_suite trixie || return 1
    mkdir -p "$dir"
    (cd "$dir" && apt-get "${apt[@]}" download ruby-redis-client >log 2>&1) || { cat "$dir/log" >&2; return 1; }
    for deb in "$dir"/*.deb; do dpkg -x "$deb" "$cache/$1/root" || return 1; done
    rm -rf "$dir"
}

# Prints the lines of a launcher that finds the libraries and gems of the suite.
#   launch_ruby NAME LAUNCHER
launch_ruby() {
    local ruby=$cache/$1/root/usr/lib/ruby gems=$cache/$1/root/usr/share/rubygems-integration program version native
    [ -n "$(find "$gems" -name 'redis-client-*.gemspec')" ] || add_redis_client "$1" || return 1
    program=$(basename "$(find "$cache/$1/root/usr/bin" -regex '.*/ruby[0-9]+\.[0-9]+' | sort | tail -n 1)")
    version=${program#ruby}.0
    native=$(find "$cache/$1/root/usr/lib" -maxdepth 1 -name '*-linux-gnu*')
    # Libraries of Debian name their data by absolute paths.
    { grep -rlZ "['\"]/usr/share/ruby-" "$ruby/vendor_ruby" "$gems" --include='*.rb' || true; } |
        xargs -0 -r sed -i "s#\(['\"]\)/usr/share/ruby-#\1$cache/$1/root/usr/share/ruby-#g"
    printf 'export RUBYLIB="%s:%s:%s:%s:%s${RUBYLIB:+:$RUBYLIB}"\n' \
        "$ruby/vendor_ruby" "$native/ruby/vendor_ruby/$version" \
        "$ruby/$version" "$ruby/$version/$(basename "$native")" "$native/ruby/$version"
    printf 'export GEM_PATH="%s:%s:%s:%s"\n' \
        "$gems/all" "$gems/$version" "$ruby/gems/$version" "$native/rubygems-integration/$version"
    # With which Ruby starts another Ruby, as RbConfig.ruby.
    printf 'require "rbconfig"\nRbConfig::CONFIG.update("bindir" => "%s", "ruby_install_name" => "%s")\n' \
        "$cache/$1" "$(basename "$2")" >"$cache/$1/launcher.rb"
    printf 'export RUBYOPT="-r%s${RUBYOPT:+ $RUBYOPT}"\n' "$cache/$1/launcher.rb"
    printf 'exec %s "$@"\n' "$(under_own_loader "$1" "$program" "$2")"
}

fetch() {
    local name=$1 suite=$2 language=$3 dir=$cache/$1 launcher=$cache/$1/$3
    # Again if the packages of the row have changed.
    if [ ! -x "$launcher" ] || [ "$(cat "$dir/fetched" 2>/dev/null)" != "$*" ]; then
        unpack "$name" "$suite" "${@:4}" || return 1
    fi
    # Again if this script has changed. It is moved into its place, because it may be in use.
    if [ "$0" -nt "$launcher" ]; then
        { echo '#!/bin/sh'; "launch_$language" "$name" "$launcher"; } >"$launcher.new" || return 1
        chmod +x "$launcher.new"
        "$launcher.new" --version >/dev/null || { say "$name does not run on this machine"; return 1; }
        mv "$launcher.new" "$launcher"
        echo "$*" >"$dir/fetched"
    fi
    printf '%s\t%s\n' "$name" "$launcher"
}

if [ $# = 0 ]; then
    mapfile -t wanted < <(names)
    set -- "${wanted[@]}"
fi
failed=0
for name in "$@"; do
    row=$(awk -v name="$name" '$1 == name' <<<"$languages")
    if [ -z "$row" ]; then
        say "unknown language $name; the names are: $(names | paste -sd' ')"
        exit 1
    fi
    # shellcheck disable=SC2086 # name, suite, language, packages
    fetch $row || { say "$name could not be downloaded"; failed=1; }
done
exit $failed
