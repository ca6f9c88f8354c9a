#!/bin/sh
# Runs what was built: C unit tests, then the specs on each Lua given. From the top of the repository.
#
# usage: test.sh BUILD LUA...    (5.4, 5.3, luajit)
set -eu

# shellcheck source-path=SCRIPTDIR
. "${0%/*}/tally.sh"

build=$1
shift

tally_begin "$build/log"
for source in spec/unit/*_test.c; do
	program=$(basename "$source" .c)
	tally_run "unit $program" env CMOCKA_MESSAGE_OUTPUT=TAP "$build/unit/$program"
done
for lua in "$@"; do
	tally_specs "$build" "$lua" "" spec/lua spec/conformance examples
done
tally_end
