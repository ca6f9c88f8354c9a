#!/bin/bash
# Runs the benchmark with a few events, and checks that every program runs, that every row is there, and that evrec and
# client-go create, patch and skip as many of the same events. It checks no times.
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

# Runs bench.sh with the given settings. The timeout ends a program that waits for an event which client-go dropped.
bench() { # SETTING...
	timeout -k 5 "${TEST_TIMEOUT:-300}" env "$@" ROUNDS=1 MS=1 EVENTS=1000 KEYS="1024 2048" "$here/bench.sh" "$build" "${luas[@]}"
}

# Prints the line of a measurement file that begins with the given fields.
row() { # FILE FIELD...
	local IFS=$'\t'
	grep -P "^${*:2}\t" "$out/$1.tsv"
}

# Whether a program created, patched and skipped as many events as client-go's correlator.
agrees() { # WORKLOAD PROGRAM VARIANT
	local theirs
	theirs=$(row counts "$1" client-go correlator | cut -f 4,6-8)
	[ -n "$theirs" ] && row counts "$@" | cut -f 4,6-8 | grep -xF "$theirs"
}

tally_begin "$build/log"
rm -f "$out"/*.tsv "$out"/bench.*
tally_check "bench: times, counts, keys, once" bench PARTS="times counts keys once"
tally_check "bench: instructions" bench PARTS=instructions WORKLOADS=duplicate
for workload in duplicate similar unique limited; do
	for program in client-go "${luas[@]}" c; do
		variants=(recorder correlator)
		[ "$program" = client-go ] || variants+=(reference)
		for variant in "${variants[@]}"; do
			tally_check "$workload, $program, $variant: a time" row times "$workload" "$program" "$variant"
			tally_check "$workload, $program, $variant: as many new, patched and skipped" agrees "$workload" "$program" "$variant"
		done
	done
	for lua in "${luas[@]}"; do
		tally_check "$workload, $lua, baseline: a time" row times "$workload" "$lua" baseline
	done
done
for fields in "5.4 recorder" "5.4 limited" "c recorder" "c limited" "c correlator"; do
	# shellcheck disable=SC2086 # two words
	tally_check "keys, $fields" row keys 2048 $fields
done
tally_check "keys: memory" row memory 2048 6144
tally_check "once: require" row once require
tally_check "once: a write that waits" row once waiting
for fields in "5.4 recorder" "5.4 baseline" "c correlator"; do
	# shellcheck disable=SC2086 # two words
	tally_check "instructions, $fields" row instructions duplicate $fields
done
tally_check "every goal is in the report" test "$(grep -cE '\| +(not )?met \|$' "$out/bench.md")" = 19
tally_check "the chart has a bar for each of evrec's rows" test "$(grep -c '<rect class="ours"' "$out/bench.svg")" = $((4 * (${#luas[@]} + 1)))
tally_end
