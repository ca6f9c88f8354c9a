#!/bin/bash
# Tries the benchmark with a few events: everything runs, every row is there, and evrec and client-go made the same of
# the same events. How long it took is nobody's business here.
#
# usage: bench-smoke.sh BUILD LUA...
set -eu

# shellcheck source-path=SCRIPTDIR
. "${0%/*}/../support/tally.sh"
here=${0%/*}
build=$1
shift
luas=("$@")
out=$build/bench

bench() { # SETTING... : bench.sh with these. An event that is lost is waited for in vain.
	timeout -k 5 "${TEST_TIMEOUT:-300}" env "$@" ROUNDS=1 MS=1 EVENTS=1000 KEYS="1024 2048" "$here/bench.sh" "$build" "${luas[@]}"
}

there() { # FILE WORKLOAD PROGRAM WAY: a line of a file, or with three arguments of the file about keys
	local IFS=$'\t'
	grep -P "^${*:2}\t" "$out/$1.tsv"
}

# Its outcome, which is what client-go's correlator made of as many events.
agrees() { # WORKLOAD PROGRAM WAY
	local theirs
	theirs=$(there counts "$1" client-go correlator | cut -f 4,6-8)
	[ -n "$theirs" ] && there counts "$@" | cut -f 4,6-8 | grep -xF "$theirs"
}

tally_begin "$build/log"
rm -f "$out"/*.tsv "$out"/bench.*
tally_check "bench: times, counts, keys" bench PARTS="times counts keys"
tally_check "bench: instructions" bench PARTS=instructions WORKLOADS=duplicate
for workload in duplicate similar unique limited; do
	for program in client-go "${luas[@]}" c; do
		ways=(recorder correlator)
		[ "$program" = client-go ] || ways+=(reference)
		for way in "${ways[@]}"; do
			tally_check "$workload, $program, $way: a time" there times "$workload" "$program" "$way"
			tally_check "$workload, $program, $way: as many new, patched and skipped" agrees "$workload" "$program" "$way"
		done
	done
	for lua in "${luas[@]}"; do
		tally_check "$workload, $lua: the floor" there times "$workload" "$lua" floor
	done
done
for row in "5.4 recorder" "5.4 limited" "c recorder" "c limited" "c correlator"; do
	# shellcheck disable=SC2086 # two words
	tally_check "keys, $row" there keys 2048 $row
done
tally_check "keys: memory" there memory 2048 6144
for row in "5.4 recorder" "5.4 floor" "c correlator"; do
	# shellcheck disable=SC2086 # two words
	tally_check "instructions, $row" there instructions duplicate $row
done
tally_check "every goal is in the report" test "$(grep -cE '\| +(not )?met \|$' "$out/bench.md")" = 11
tally_check "the chart has a bar for each of evrec's" test "$(grep -c '<rect class="ours"' "$out/bench.svg")" = $((4 * (${#luas[@]} + 1)))
tally_end
