#!/bin/bash
# Checks which room of csrc includes and calls which: reads the sources, and the object files that were built from them.
#
# usage: rooms.sh BUILD LUA...
set -eu

# shellcheck source-path=SCRIPTDIR
. "${0%/*}/tally.sh"
build=$1
shift
luas=("$@")

# Fails, and shows the lines, if any line comes in.
none() {
	! grep .
}

# ROOM PATTERN: the headers in quotes that the room's files include must match the pattern.
includes() {
	compgen -G "csrc/$1/*.c" >/dev/null || { echo "no such room"; return 1; }
	grep -Hn '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' "csrc/$1"/*.[ch] | grep -vE "\"($2)\"" | none
}

# PATTERN FILES: header names in <> that only FILES, an extended regular expression, may include.
system_header() {
	grep -HnE "^[[:space:]]*#[[:space:]]*include[[:space:]]*<$1>" -r csrc | grep -vE "^$2:" | none
}

# FOLDER PATTERN OBJECTS: of the objects below the folder, only OBJECTS may use undefined symbols that match the
# pattern.
calls() {
	find "$build/$1" -name '*.o' -print0 | xargs -0r nm -A -u | sed "s:^$build/::" |
		awk -v symbol="^($2)(@.*)?\$" -v allowed="^($3):\$" '$NF ~ symbol && $1 !~ allowed' | none
}

# LUA: of the core's functions the binding calls only evrec_*, which evrec.h declares.
binding_calls() {
	comm -12 <(nm -u "$build/$1"/obj/*.o | awk 'NF == 2 { print $2 }' | sort -u) \
		<(nm --defined-only -g "$build/libevrec.a" | awk 'NF == 3 { print $3 }' | sort -u) | grep -v '^evrec_' | none
}

exports() { # LUA
	[ "$(nm -D --defined-only "$build/$1/evrec/core.so" | awk '{ print $NF }')" = luaopen_evrec_core ] ||
		{ nm -D --defined-only "$build/$1/evrec/core.so"; return 1; }
}

name='[a-z0-9_]+\.h'
tally_begin "$build/log"

# A line names a room, and the rooms above it that it must not include. It may include itself and all others above it.
above=
while read -r room forbidden; do
	above="$above${above:+|}$room"
	allowed=$(echo "$above" | tr '|' '\n' | grep -vxE "${forbidden:-nothing}" | paste -sd'|')
	tally_check "$room includes $(echo "$allowed" | tr '|' ' ')" includes "$room" "evrec(_read|_otlp)?\.h|($allowed)/$name"
done <<'END'
base
event
correlate
outbox event|correlate
spool event|correlate
store correlate|outbox
sender event|correlate|store
http event|correlate|outbox|spool|store|sender
exec event|correlate|outbox|spool|store|sender|http
kubernetes event|correlate|spool|store|sender|exec
otlp correlate|spool|store|sender|http|exec|kubernetes
sink correlate
read correlate|outbox|spool|sender|otlp
share correlate|outbox|store|sender|http|exec|kubernetes|otlp|sink|read
recorder store|otlp|read
END
tally_check "lua includes evrec.h" includes lua "evrec(_read|_otlp)?\.h|lua/$name"
tally_check "Lua's headers in lua alone" system_header '(lua|lauxlib|luajit).*' 'csrc/lua/[a-z_]+\.[ch]'
tally_check "curl's headers in http alone" system_header 'curl/.*' 'csrc/http/curl\.h'
tally_check "zlib's header in otlp alone" system_header 'zlib\.h' 'csrc/otlp/gzip\.c'
tally_check "SQLite's header in spool alone" system_header 'sqlite3\.h' 'csrc/spool/sqlite\.h'

tally_check "the core never calls Lua" calls core 'luaL?_.*' nobody
# curl_functions and sqlite_functions have the addresses of the libraries' functions.
tally_check "curl is called by http alone" calls core 'curl_functions' 'core/http/[a-z_]+\.o'
tally_check "SQLite is called by spool and store alone" \
	calls core 'sqlite_functions' 'core/(spool/spool(_file|_sql)?|store/[a-z_]+)\.o'
tally_check "curl and SQLite are not linked" \
	calls core 'curl_(easy|multi|slist|url|global|version|free).*|sqlite3_.*' nobody
tally_check "libraries are loaded by base alone" calls core 'dl(m?open|v?sym|close)' 'core/base/library\.o'
tally_check "zlib is called by otlp alone" calls core '(de|in)flate.*|(un)?compress2?' 'core/otlp/gzip\.o'
tally_check "threads are started by the sender alone" calls core 'pthread_create' 'core/sender/sender_thread\.o'
tally_check "processes are started by exec alone" \
	calls core 'fork|vfork|_Fork|clone|posix_spawnp?|exec[lv]p?e?|fexecve|system|popen' 'core/exec/process\.o'
tally_check "memory is taken by base alone" calls core '(m|c|re)alloc|free|strn?dup|v?asprintf' 'core/base/memory\.o'
tally_check "correlate has no clock, lock or I/O" calls core/correlate \
	'(clock_)?gettime.*|time|pthread_.*|evrec_clock_now|f?open(64)?|read|write|send|recv' nobody
tally_check "the core never prints or aborts" calls core \
	'_?_?v?f?printf(_chk)?|puts|putchar|perror|stdout|stderr|abort|exit|__assert_fail' nobody
tally_check "the process is ended after a signal alone" calls core '_[eE]xit' 'core/sender/on_signal\.o'
for lua in "${luas[@]}"; do
	tally_check "$lua: the binding calls evrec.h alone" binding_calls "$lua"
	tally_check "$lua: the binding starts no thread, calls no curl" calls "$lua/obj" 'pthread_create|curl_.*' nobody
	tally_check "$lua: luaopen_evrec_core alone is exported" exports "$lua"
done
tally_end
