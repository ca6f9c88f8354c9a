#!/bin/bash
# Measures evrec, the baseline and client-go in turns, and reports. README.md describes what is measured, and how.
#
# usage: bench.sh BUILD LUA...    (from the top of the repository)
#
# PARTS      what to measure: times, counts, keys, once, instructions (all of them). Earlier measurements of the
#            other parts stay in the report
# WORKLOADS  which workloads to run (duplicate similar unique limited)
# ROUNDS     number of rounds (7)
# MS         milliseconds of CPU time of one measurement, after a warm-up of half of that (80)
# EVENTS     number of events for counting allocations and instructions (10000, more than a cache holds)
# KEYS       the cache sizes to fill, powers of two (4096 65536 1048576)
set -eu -o pipefail

here=${0%/*}
build=$1
shift
luas=("$@")
out=$build/bench
read -ra parts <<<"${PARTS:-times counts keys once instructions}"
read -ra workloads <<<"${WORKLOADS:-duplicate similar unique limited}"
read -ra keys <<<"${KEYS:-4096 65536 1048576}"
rounds=${ROUNDS:-7}
amount=${MS:-80}ms
events=${EVENTS:-10000}

# Runs a program on one core: the last one, as the system uses the first one most.
cores=$(awk '/^Cpus_allowed_list/ { print $2 }' /proc/self/status)
pinned=(taskset -c "${cores##*[,-]}" env GOMAXPROCS=1)

# Prints lines of a program and a variant. Rows that the report compares are next to each other, so that they run within
# seconds.
rows() {
	local lua
	for variant in correlator recorder; do echo "client-go $variant"; done
	for lua in "${luas[@]}"; do
		for variant in recorder reference correlator baseline; do echo "$lua $variant"; done
	done
	for variant in recorder reference correlator; do echo "c $variant"; done
}

# Sets `command` for a program. NAME is its script or executable, except for client-go, which has only one.
command_of() { # PROGRAM NAME
	case $1 in
	c) command=("$out/$2") ;;
	client-go) command=("$out/client-go") ;;
	luajit) command=(luajit "$here/$2.lua") ;;
	*) command=("lua$1" "$here/$2.lua") ;;
	esac
	export LUA_PATH="./lua/?.lua;./lua/?/init.lua;$here/?.lua;;" LUA_CPATH="$build/$1/?.so;$out/$1/?.so;;"
}

# Prints its arguments as one line of a measurement file, separated by tabs.
line() {
	local IFS=$'\t'
	echo "$*"
}

measure_times() {
	local round workload program variant command outcome
	for ((round = 1; round <= rounds; round++)); do
		echo "  times: round $round of $rounds" >&2
		for workload in "${workloads[@]}"; do
			while read -r program variant; do
				command_of "$program" evrec
				outcome=$("${pinned[@]}" "${command[@]}" "$variant" "$workload" "$amount")
				line "$workload" "$program" "$variant" "$outcome"
			done < <(rows)
		done
	done
}

# Prints how often a program calls malloc, realloc and calloc, and the bytes that it requests by them.
allocations() { # COMMAND...
	memusage "$@" 2>&1 >/dev/null | sed 's/\x1b\[[0-9;]*m//g' |
		awk '/^ *(malloc|realloc|calloc)\|/ { calls += $2; bytes += $3 } END { print calls, bytes }'
}

# The difference between the two runs is the cost of EVENTS events, since the cost of starting is in both.
measure_counts() {
	local workload program variant command outcome once twice
	echo "  counts: $events events of each" >&2
	for workload in "${workloads[@]}"; do
		while read -r program variant; do
			command_of "$program" evrec
			outcome=$("${pinned[@]}" "${command[@]}" "$variant" "$workload" "$events")
			once="0 0" twice="0 0"
			if [ "$program" != client-go ]; then
				once=$(allocations "${command[@]}" "$variant" "$workload" "$events")
				twice=$(allocations "${command[@]}" "$variant" "$workload" $((2 * events)))
			fi
			line "$workload" "$program" "$variant" "$outcome" "$((${twice% *} - ${once% *}))" "$((${twice#* } - ${once#* }))"
		done < <(rows)
	done
}

# Measures Lua 5.4, which the goals are about, and C, which shows the core alone.
measure_keys() {
	local round n program variant command outcome
	for ((round = 1; round <= (rounds + 1) / 2; round++)); do
		for n in "${keys[@]}"; do
			echo "  keys: $n, round $round of $(((rounds + 1) / 2))" >&2
			while read -r program variant; do
				command_of "$program" keys
				outcome=$("${pinned[@]}" "${command[@]}" "$variant" "$n" "$amount")
				line "$n" "$program" "$variant" "$outcome"
			done < <(printf '%s\n' "5.4 recorder" "5.4 limited" "c recorder" "c limited" "c correlator")
		done
	done
}

measure_memory() {
	local n outcome
	for n in "${keys[@]}"; do
		outcome=$("$out/keys" correlator "$n" memory)
		line "$n" "$outcome"
	done
}

# Measures costs that arise once, on Lua 5.4.
measure_once() {
	local what command
	command_of 5.4 once
	for ((round = 1; round <= 3 * rounds; round++)); do
		for what in require waiting; do
			line "$what" "$("${pinned[@]}" "${command[@]}" "$what")"
		done
	done
}

instructions() { # COMMAND...
	valgrind --tool=callgrind --callgrind-out-file=/dev/null "$@" 2>&1 >/dev/null | awk '/Collected/ { print $NF }'
}

measure_instructions() {
	local workload program variant command once twice
	for workload in "${workloads[@]}"; do
		echo "  instructions: $workload" >&2
		while read -r program variant; do
			command_of "$program" evrec
			once=$(instructions "${command[@]}" "$variant" "$workload" "$events")
			twice=$(instructions "${command[@]}" "$variant" "$workload" $((2 * events)))
			line "$workload" "$program" "$variant" "$events" "$((twice - once))"
		done < <(rows | grep -E '^(5\.4|c) ')
	done
}

machine() {
	local lua command versions=()
	line date "$(date -u +%Y-%m-%d)"
	line processor "$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores; one is used"
	line system "$(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' /etc/os-release)"
	line compiler "$(${CC:-gcc} --version | head -n 1), $(sed -n 's/^OPTIMIZE = //p' Makefile)"
	line Go "$("$go" env GOVERSION)"
	line client-go "$(sed -n 's/^.*k8s.io\/client-go //p' "$here/client-go/go.mod")"
	for lua in "${luas[@]}"; do
		command_of "$lua" evrec
		versions+=("$("${command[0]}" -v 2>&1 | cut -d ' ' -f 1-2)")
	done
	line Lua "$(printf '%s, ' "${versions[@]}" | sed 's/, $//')"
}

go=$("${here%/*}/support/go.sh")
echo "  client-go: built by $("$go" env GOVERSION)" >&2
(cd "$here/client-go" && GOFLAGS=-buildvcs=false "$go" build -o "$OLDPWD/$out/client-go" .)
machine >"$out/machine.tsv"
for part in "${parts[@]}"; do
	"measure_$part" >"$out/$part.new"
	mv "$out/$part.new" "$out/$part.tsv"
	[ "$part" != keys ] || measure_memory >"$out/memory.tsv"
done
LUA_PATH="$here/?.lua;;" lua5.4 "$here/report.lua" "$out"
