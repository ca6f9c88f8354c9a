#!/bin/bash
# The long tests in full, which .ci/run runs in a short form: some hours. The last line is the sum. From the top of the
# repository, after `make all units`.
#
# usage: full.sh BUILD LUA...    (5.4, 5.3, luajit)
#
# FULL: runs only the steps whose name this extended regular expression finds.
set -u

here=${0%/*}
# shellcheck source-path=SCRIPTDIR
. "$here/steps.sh"
# shellcheck source-path=SCRIPTDIR
. "$here/tally.sh"
build=$1
shift
luas=("$@")
export TEST_TIMEOUT=3600

wanted() { # NAME COMMAND...
	if [[ $1 =~ ${FULL-} ]]; then
		step "$@"
	fi
}

# Every unit test that reads EVREC_FORKS, the number of processes that it forks.
forks() {
	local sources source program
	mapfile -t sources < <(grep -l 'getenv("EVREC_FORKS")' spec/unit/*/*_test.c)
	if [ ${#sources[@]} = 0 ]; then
		echo "0 passed, 0 failed, 1 skipped"
		return
	fi
	tally_begin "$build/log"
	for source in "${sources[@]}"; do
		program=${source#spec/unit/} program=${program%.c}
		tally_run "unit $program" env CMOCKA_MESSAGE_OUTPUT=TAP EVREC_FORKS=300 "$build/unit/$program"
	done
	tally_end
}

# Thirty days of an operator by a fake clock, in C and from Lua. Each run has a seed of its own.
soak() {
	local lua round
	tally_begin "$build/log"
	for round in 1 2 3 4 5 6 7 8 9 10; do
		tally_run "unit recorder/soak_test, $round" env CMOCKA_MESSAGE_OUTPUT=TAP "$build/unit/recorder/soak_test"
	done
	for lua in "${luas[@]}"; do
		tally_specs "$build" "$lua" "" spec/lua/soak_spec.lua
	done
	tally_end
}

# A writer of the event store is killed a hundred times.
killed() {
	tally_begin "$build/log"
	tally_run "unit store/store_killed_test" env CMOCKA_MESSAGE_OUTPUT=TAP EVREC_KILLS=100 \
		"$build/unit/store/store_killed_test"
	tally_end
}

steps_begin "$build/full"
wanted conformance make conformance STEPS=1000000 TRACES=1000
wanted forks forks
wanted soak soak
wanted killed killed
wanted arm64 make test-arm64
wanted s390x make test-s390x
wanted drill make drill DRILL_RUNS=3
wanted hosts make hosts
wanted hosts-cost make hosts-cost
wanted bench make bench
wanted bench-store make bench-store
wanted throughput make throughput
steps_end
