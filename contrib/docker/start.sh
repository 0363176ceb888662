#!/bin/sh
# Starts the server of the image: start.sh CONFIGURATION [OPTION...]. The options are those of the server, and take precedence.
#
# A server that is started with `appendonly yes` and without an AOF begins empty, whatever its RDB file holds, and its next
# save overwrites that file. So a volume that has an RDB file alone, of a server without an AOF, is refused.
set -eu
config=$1
shift

# The lines of a configuration and of those that it includes, in the order in which they apply.
settings() {
    tr -d "\r\"'" | while read -r name value; do
        case $name in
        [Ii]nclude | INCLUDE) for file in $value; do settings <"$file"; done ;;
        *) echo "$name $value" ;;
        esac
    done
}
all=$({ cat "$config" && echo && printf ' %s' "$@" | sed 's/ --/\n/g' && echo; } | settings)
# A setting, or its default: the last line counts.
setting() { echo "$all" | awk -v name="$1" -v value="$2" 'tolower($1) == name { value = $2 } END { print value }'; }

directory=$(setting dir .)
dump=$directory/$(setting dbfilename dump.rdb)
name=$(setting appendfilename appendonly.aof)
manifest=$directory/$(setting appenddirname appendonlydir)/$name.manifest
# Servers before Redis 7.0 had one file, which newer ones read.
if [ "$(setting appendonly no)" = yes ] && [ -s "$dump" ] && ! [ -s "$manifest" ] && ! [ -s "$directory/$name" ]; then
    echo "dq: $dump is here and no AOF, so a server with appendonly yes would begin empty and overwrite it. Start it once with" \
        "--appendonly no, send CONFIG SET appendonly yes, wait until INFO says aof_rewrite_in_progress:0, and start it again" \
        "without this option. To begin empty, remove the file." >&2
    exit 1
fi
exec valkey-server "$config" "$@"
