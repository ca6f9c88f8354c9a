#!/bin/bash
# Who may include and call whom: reads the sources of csrc and the objects that were made of them.
#
# usage: rooms.sh BUILD LUA...
set -eu

# shellcheck source-path=SCRIPTDIR
. "${0%/*}/tally.sh"
build=$1
shift
luas=("$@")

# No line may come in; those that do are shown.
none() {
	! grep .
}

# ROOM PATTERN: what the room's files include by a name of evrec's own must match.
includes() {
	compgen -G "csrc/$1/*.c" >/dev/null || { echo "no such room"; return 1; }
	grep -Hn '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' "csrc/$1"/*.[ch] | grep -vE "\"($2)\"" | none
}

# PATTERN FILES: header names in <> that only FILES, an extended regular expression, may include.
system_header() {
	grep -HnE "^[[:space:]]*#[[:space:]]*include[[:space:]]*<$1>" -r csrc | grep -vE "^$2:" | none
}

# FOLDER PATTERN OBJECTS: symbols that objects below the folder take from elsewhere, but only OBJECTS may.
calls() {
	find "$build/$1" -name '*.o' -print0 | xargs -0r nm -A -u | sed "s:^$build/::" |
		awk -v symbol="^($2)(@.*)?\$" -v allowed="^($3):\$" '$NF ~ symbol && $1 !~ allowed' | none
}

# LUA: of the core, the binding calls what evrec.h names.
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

tally_check "base includes base" includes base "evrec\.h|base/$name"
tally_check "event includes base" includes event "evrec\.h|(base|event)/$name"
tally_check "correlate includes base, event" includes correlate "evrec\.h|(base|event|correlate)/$name"
tally_check "deliver includes base" includes deliver "evrec\.h|(base|deliver)/$name"
tally_check "flow includes all four" includes flow "evrec\.h|(base|event|correlate|deliver|flow)/$name"
tally_check "lua includes evrec.h" includes lua "evrec\.h|lua/$name"
tally_check "Lua's headers in lua alone" system_header '(lua|lauxlib|luajit).*' 'csrc/lua/[a-z_]+\.[ch]'
tally_check "curl's headers in http alone" system_header 'curl/.*' 'csrc/deliver/http[a-z_]*\.[ch]'

tally_check "SQLite's header in spool alone" system_header 'sqlite3\.h' 'csrc/deliver/spool\.c'

tally_check "the core never calls Lua" calls core 'luaL?_.*' nobody
tally_check "curl is called by http alone" calls core 'curl_.*' 'core/deliver/http[a-z_]*\.o'
tally_check "SQLite is called by spool alone" calls core 'sqlite3_.*' 'core/deliver/spool\.o'
tally_check "threads are started by the sender alone" calls core 'pthread_create' 'core/deliver/sender\.o'
tally_check "memory is taken by base alone" calls core '(m|c|re)alloc|free|strn?dup|v?asprintf' 'core/base/memory\.o'
tally_check "correlate has no clock, lock or I/O" calls core/correlate \
	'(clock_)?gettime.*|time|pthread_.*|evrec_clock_now|f?open(64)?|read|write|send|recv' nobody
tally_check "the core never prints or aborts" calls core \
	'_?_?v?f?printf(_chk)?|puts|putchar|perror|stdout|stderr|abort|_?exit|__assert_fail' nobody
for lua in "${luas[@]}"; do
	tally_check "$lua: the binding calls evrec.h alone" binding_calls "$lua"
	tally_check "$lua: the binding starts no thread, calls no curl" calls "$lua/obj" 'pthread_create|curl_.*' nobody
	tally_check "$lua: luaopen_evrec_core alone is exported" exports "$lua"
done
tally_end
