#!/bin/sh
# Runs what was built: C unit tests, what fuzzing has found, then the specs on each Lua given. From the top of the
# repository.
#
# usage: test.sh BUILD LUA...    (5.4, 5.3, luajit)
set -eu

# shellcheck source-path=SCRIPTDIR
. "${0%/*}/tally.sh"

build=$1
shift

# What evrec.h offers, and no test calls with memory running out.
without_scarcity() {
	for function in $(nm -g --defined-only "$build/libevrec.a" | awk '$2 == "T" && $3 ~ /^evrec_/ { print $3 }'); do
		grep -q "[^a-z_]$function(" spec/unit/memory_*_test.c spec/unit/scarce.h || echo "$function"
	done
}

nothing() {
	! grep .
}

tally_begin "$build/log"
for source in spec/unit/*_test.c; do
	program=$(basename "$source" .c)
	tally_run "unit $program" env CMOCKA_MESSAGE_OUTPUT=TAP "$build/unit/$program"
done
tally_check "every public function, with memory running out" eval 'without_scarcity | nothing'
for source in spec/fuzz/*_fuzz.c; do
	target=$(basename "$source" _fuzz.c)
	tally_check "fuzz corpus $target" "$build/fuzz/$target" "spec/fuzz/corpus/$target"/*
done
for lua in "$@"; do
	tally_run "$lua memory_test" env CMOCKA_MESSAGE_OUTPUT=TAP "$build/$lua/memory_test"
	tally_specs "$build" "$lua" "" spec/lua spec/conformance examples
done
tally_end
