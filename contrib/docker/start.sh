#!/bin/sh
# Starts the server of the image: start.sh CONFIGURATION [OPTION...]. The options are those of the server, and take
# precedence. DQ_PASSWORD is the password of the default user, if it is set.
#
# A server that is started with `appendonly yes` and without an AOF begins empty, whatever its RDB file holds, and its
# next save overwrites that file. So a volume that has an RDB file alone, of a server without an AOF, is refused.
set -eu
refuse() {
    printf 'dq: %s\n' "$*" >&2
    exit 1
}
config=$1
shift
for word in "$config" "$@"; do
    [ "$word" != - ] || refuse "a configuration from standard input (-) is not supported: name a file"
done

# The options as lines of a configuration. The server takes the words after the name of an option as they are.
options() {
    for word; do
        case $word in
        --*) printf '\n%s' "${word#--}" ;;
        *) printf ' "%s"' "$word" ;;
        esac
    done
    echo
}
# The lines of a configuration and of those that it includes, in the order in which they apply, without the quotes
# around a value. A file that cannot be read is left to the server, which says so.
settings() {
    tr '\r' ' ' | while read -r name value || [ -n "$name" ]; do
        case $name in
        '#'*) continue ;;
        \"*\" | \'*\') name=${name#?} && name=${name%?} ;;
        esac
        case $value in
        \"*\" | \'*\') value=${value#?} && value=${value%?} ;;
        esac
        printf '%s %s\n' "$name" "$value"
        case $name in
        [Ii][Nn][Cc][Ll][Uu][Dd][Ee]) include "$value" ;;
        esac
    done
}
# A pattern is expanded, and a value is not split at blanks. Each `settings` in a pipe has an IFS of its own.
include() (
    IFS=
    for file in $1; do
        if [ -f "$file" ] && [ -r "$file" ]; then
            (unset IFS && settings) <"$file"
        fi
    done
)
all=$({ cat "$config" && echo && options "$@"; } | settings)
# Such a value may mean something else to the server.
unclear=$(printf '%s\n' "$all" | grep -iE "^(include|dir|dbfilename|append(only|filename|dirname)) .*[\\\\\"']" || true)
[ -z "$unclear" ] || refuse "cannot tell where the data is, because of a quote or a backslash within a value: $unclear"
# A setting, or its default: the last line counts.
setting() {
    printf '%s\n' "$all" | awk -v name="$1" -v value="$2" '
        tolower($1) == name { value = $0; sub(/^[^ ]* /, "", value) }
        END { print value }'
}

directory=$(setting dir .)
dump=$directory/$(setting dbfilename dump.rdb)
name=$(setting appendfilename appendonly.aof)
manifest=$directory/$(setting appenddirname appendonlydir)/$name.manifest
appendonly=$(setting appendonly no | tr '[:upper:]' '[:lower:]')
# Servers before Redis 7.0 had one file, which newer ones read.
if [ "$appendonly" = yes ] && [ -s "$dump" ] && ! [ -s "$manifest" ] && ! [ -s "$directory/$name" ]; then
    refuse "$dump is here and no AOF, so a server with appendonly yes would begin empty and overwrite it. Start it" \
        "once with --appendonly no, send CONFIG SET appendonly yes, wait until INFO says aof_rewrite_in_progress:0," \
        "and start it again" \
        "without this option. To begin empty, remove the file."
fi
[ -n "${DQ_PASSWORD:-}" ] || exec valkey-server "$config" "$@"
# By standard input, since the arguments of a process can be read by others.
exec valkey-server "$config" "$@" - <<EOF
requirepass "$(printf '%s' "$DQ_PASSWORD" | sed 's/[\\"]/\\&/g')"
EOF
