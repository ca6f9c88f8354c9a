#!/bin/bash
# Measures the event store and the command's replay, and says which goals are met. All times are processor time.
#
# usage: store.sh BUILD    (from the top of the repository)
#
# EVENTS       the events of the store (1000000)
# OCCURRENCES  the occurrences of each trace (1000000)
set -eu

here=${0%/*}
build=$1
occurrences=${OCCURRENCES:-1000000}
export LUA_PATH="./lua/?.lua;./lua/?/init.lua;;" LUA_CPATH="$build/5.4/?.so;;"
dir=$(mktemp -d "${TMPDIR:-/tmp}/evrec-bench.XXXXXX")
trap 'rm -rf "$dir"' EXIT

# Prints the user's and the system's processor seconds of a command, whose output is lost.
seconds() { # COMMAND...
	local TIMEFORMAT='%U %S'
	{ time "$@" >/dev/null 2>"$dir/told"; } 2>&1 | awk '{ print $1 + $2 }'
}

# The median of three runs. The first one has memory that the machine has not used yet, which takes longer.
median() { # COMMAND...
	for _ in 1 2 3; do seconds "$@"; done | sort -n | sed -n 2p
}

# A line with a goal, as the C programs print them.
goal() { # NAME WANTED SECONDS MOST
	printf '  %-56s %-16s %8.2f s   %s\n' "$1" "$2" "$3" \
		"$(awk -v took="$3" -v most="$4" 'BEGIN { print took < most ? "met" : "NOT met" }')"
}

echo "$(date -u +%Y-%m-%d), $(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)"
"$build/bench/store" "$dir/events.db" "${EVENTS:-1000000}"
"$build/bench/store_query" "$dir/events.db"
while read -r objects differing name; do
	lua5.4 "$here/trace.lua" "$dir/trace" "$objects" "$occurrences" "$differing"
	took=$(median lua5.4 lua/bin/evrec replay "$dir/trace")
	[ ! -s "$dir/told" ] || { cat "$dir/told" >&2; exit 1; }
	goal "replay of $occurrences occurrences: $name" "under 3 s" "$took" 3
	rm "$dir/trace"
done <<'END'
300 0 300 objects
300 2 300, of 5 messages 2 new
20000 0 20000 objects
END
