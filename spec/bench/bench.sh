#!/bin/bash
# Measures evrec, the floor and client-go, in turns, and reports. README.md says what is measured, and how.
#
# usage: bench.sh BUILD LUA...    (from the top of the repository)
#
# PARTS      what to measure: times, counts, keys, instructions (all of them); what was measured before is kept
# WORKLOADS  (duplicate similar unique limited)
# ROUNDS     how often (7)
# MS         for how long at a time, after half of that to warm up (80)
# EVENTS     how many there are where allocations and instructions are counted (10000: more than a cache holds)
# KEYS       how many the caches are filled with: powers of two (4096 65536 1048576)
set -eu -o pipefail

here=${0%/*}
build=$1
shift
luas=("$@")
out=$build/bench
read -ra parts <<<"${PARTS:-times counts keys instructions}"
read -ra workloads <<<"${WORKLOADS:-duplicate similar unique limited}"
read -ra keys <<<"${KEYS:-4096 65536 1048576}"
rounds=${ROUNDS:-7}
amount=${MS:-80}ms
events=${EVENTS:-10000}

# What runs a program: on one core, the last that there is, as the first has the most to do.
cores=$(awk '/^Cpus_allowed_list/ { print $2 }' /proc/self/status)
first=(taskset -c "${cores##*[,-]}" env GOMAXPROCS=1)

# Each line: a program and a way. Neighbours are compared, so they run one after the other.
rows() {
	local lua
	for way in correlator recorder; do echo "client-go $way"; done
	for lua in "${luas[@]}"; do
		for way in recorder reference correlator floor; do echo "$lua $way"; done
	done
	for way in recorder reference correlator; do echo "c $way"; done
}

# Sets `command`, for a program, with the script or executable of that name where there is more than one.
command_of() { # PROGRAM NAME
	case $1 in
	c) command=("$out/$2") ;;
	client-go) command=("$out/client-go") ;;
	luajit) command=(luajit "$here/$2.lua") ;;
	*) command=("lua$1" "$here/$2.lua") ;;
	esac
	export LUA_PATH="./lua/?.lua;./lua/?/init.lua;$here/?.lua;;" LUA_CPATH="$build/$1/?.so;$out/$1/?.so;;"
}

# Fields of the lines that are kept are separated by tabs.
line() {
	local IFS=$'\t'
	echo "$*"
}

measure_times() {
	local round workload program way command outcome
	for ((round = 1; round <= rounds; round++)); do
		echo "  times: round $round of $rounds" >&2
		for workload in "${workloads[@]}"; do
			while read -r program way; do
				command_of "$program" evrec
				outcome=$("${first[@]}" "${command[@]}" "$way" "$workload" "$amount")
				line "$workload" "$program" "$way" "$outcome"
			done < <(rows)
		done
	done
}

# What a program asks malloc, realloc and calloc for: calls and bytes.
asked() { # COMMAND...
	memusage "$@" 2>&1 >/dev/null | sed 's/\x1b\[[0-9;]*m//g' |
		awk '/^ *(malloc|realloc|calloc)\|/ { calls += $2; bytes += $3 } END { print calls, bytes }'
}

# The difference between two runs is that of their events: what starting costs is in both.
measure_counts() {
	local workload program way command outcome once twice
	echo "  counts: $events events of each" >&2
	for workload in "${workloads[@]}"; do
		while read -r program way; do
			command_of "$program" evrec
			outcome=$("${first[@]}" "${command[@]}" "$way" "$workload" "$events")
			once="0 0" twice="0 0"
			if [ "$program" != client-go ]; then
				once=$(asked "${command[@]}" "$way" "$workload" "$events")
				twice=$(asked "${command[@]}" "$way" "$workload" $((2 * events)))
			fi
			line "$workload" "$program" "$way" "$outcome" "$((${twice% *} - ${once% *}))" "$((${twice#* } - ${once#* }))"
		done < <(rows)
	done
}

# Lua 5.4 and C, as the goals are about the one and the other shows what the core does.
measure_keys() {
	local round n program way command outcome
	for ((round = 1; round <= (rounds + 1) / 2; round++)); do
		for n in "${keys[@]}"; do
			echo "  keys: $n, round $round of $(((rounds + 1) / 2))" >&2
			while read -r program way; do
				command_of "$program" keys
				outcome=$("${first[@]}" "${command[@]}" "$way" "$n" "$amount")
				line "$n" "$program" "$way" "$outcome"
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

instructions() { # COMMAND...
	valgrind --tool=callgrind --callgrind-out-file=/dev/null "$@" 2>&1 >/dev/null | awk '/Collected/ { print $NF }'
}

measure_instructions() {
	local workload program way command once twice
	for workload in "${workloads[@]}"; do
		echo "  instructions: $workload" >&2
		while read -r program way; do
			command_of "$program" evrec
			once=$(instructions "${command[@]}" "$way" "$workload" "$events")
			twice=$(instructions "${command[@]}" "$way" "$workload" $((2 * events)))
			line "$workload" "$program" "$way" "$events" "$((twice - once))"
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
