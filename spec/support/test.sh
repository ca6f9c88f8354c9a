#!/bin/sh
# Runs the C unit tests, the fuzz targets with their corpus, then the specs on each Lua given; all must be built. From
# the top of the repository.
#
# usage: test.sh BUILD LUA...    (5.4, 5.3, luajit)
#
# EVREC_RUN: a command that runs the programs, if this machine cannot run them itself, such as `qemu-s390x`
set -eu

# shellcheck source-path=SCRIPTDIR
. "${0%/*}/tally.sh"

build=$1
shift
export TALLY_JOBS="${TALLY_JOBS:-$(nproc)}"
export EVREC_BUILD="$build" # for the spec that runs an example in C

# Prints the public functions that no test calls while memory runs out.
without_alloc_failure() {
	for function in $(nm -g --defined-only "$build/libevrec.a" | awk '$2 == "T" && $3 ~ /^evrec_/ { print $3 }'); do
		grep -q "[^a-z_]$function(" spec/unit/*/no_memory_test.c spec/unit/support/alloc_failure.c \
			spec/unit/support/no_memory_recorder.c || echo "$function"
	done
}

nothing() {
	! grep .
}

tally_begin "$build/log"
for source in spec/unit/*/*_test.c spec/unit/*/*_test.cpp; do
	program=${source#spec/unit/} program=${program%.c*}
	tally_run "unit $program" env CMOCKA_MESSAGE_OUTPUT=TAP ${EVREC_RUN:+"$EVREC_RUN"} "$build/unit/$program"
done
tally_check "every public function, with memory running out" eval 'without_alloc_failure | nothing'
for source in spec/fuzz/*_fuzz.c; do
	target=$(basename "$source" _fuzz.c)
	tally_check "fuzz corpus $target" ${EVREC_RUN:+"$EVREC_RUN"} "$build/fuzz/$target" "spec/fuzz/corpus/$target"/*
done
for lua in "$@"; do
	for program in memory_test states_test; do
		tally_run "$lua $program" env CMOCKA_MESSAGE_OUTPUT=TAP ${EVREC_RUN:+"$EVREC_RUN"} "$build/$lua/$program"
	done
	tally_specs "$build" "$lua" "" spec/lua spec/conformance examples
done
tally_end
