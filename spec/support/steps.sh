# shellcheck shell=bash
# Runs steps, and sums them up: to be read (`.`) by a bash script at the top of the repository, which then calls
#
#   steps_begin DIR [LIMIT]   DIR gets the output of each step, as NAME.log. LIMIT: the seconds for all paced steps
#   step NAME COMMAND...      runs the command and prints how long it took; later steps run even if it fails
#   paced_step SECONDS NAME COMMAND...
#                             a step that takes SECONDS on a usual machine. If it would end after LIMIT at the pace of
#                             the paced steps so far, then neither it nor a later one runs; each counts as a skipped test
#   steps_at_once FUNCTION... runs functions beside each other, each of which calls these two. Each step's output is
#                             printed at its end
#   steps_end                 prints the failed tests of each step again, a line for each step, then the sum,
#                             `N passed, N failed[, N skipped]`; returns 1 if anything failed or no step ran
#
# A step counts the tests of the last line `N passed, N failed[, N skipped]` in its output; without such a line it
# counts as one test. A command that fails without a failed test counts as one failed.

steps_begin() {
	steps_dir=$1 steps_limit=${2-0} steps_usual=0 steps_took=0 steps_late='' steps_beside=''
	mkdir -p "$steps_dir"
	: >"$steps_dir/steps"
}

steps_sum() { # passed failed skipped
	printf '%d passed, %d failed%s\n' "$1" "$2" "$([ "$3" = 0 ] || echo ", $3 skipped")"
}

step() {
	local name=$1 log=$steps_dir/$1.log started=$SECONDS code=0 sum p f s
	shift
	if [ -n "$steps_beside" ]; then
		"$@" </dev/null >"$log" 2>&1 || code=$?
	else
		printf '\n==== %s ====\n' "$name"
		"$@" </dev/null 2>&1 | tee "$log"
		code=${PIPESTATUS[0]}
	fi
	sum=$(grep -E '^[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?$' "$log" | tail -n 1)
	if [ -n "$sum" ]; then
		read -r p f s <<<"$(tr -cs '0-9' ' ' <<<"$sum")"
	else
		p=$((code == 0)) f=0 s=0
	fi
	if [ "$code" != 0 ] && [ "$f" = 0 ]; then
		f=1
	fi
	steps_add "$name" $((SECONDS - started)) "$p" "$f" "${s:-0}"
}

# Notes a step, and prints its output if that was not printed before; one step at a time.
steps_add() { # name seconds passed failed skipped [why]
	(
		flock 9
		if [ -n "$steps_beside" ] && [ -z "${6-}" ]; then
			printf '\n==== %s ====\n' "$1"
			cat "$steps_dir/$1.log"
		fi
		printf -- '---- %-13s %5d s   %s\n' "$1" "$2" "$(steps_sum "$3" "$4" "$5")${6:+: $6}"
		printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$4" "$5" "${6-}" >>"$steps_dir/steps"
	) 9>"$steps_dir/lock"
}

paced_step() {
	local usual=$1 started=$SECONDS
	shift
	if [ -z "$steps_late" ] && [ "$(steps_expect "$usual")" -gt $((steps_limit - SECONDS)) ]; then
		steps_late="$1 would take $(steps_expect "$usual") s on this machine, and $((steps_limit - SECONDS)) s were left"
	fi
	if [ -n "$steps_late" ]; then
		steps_add "$1" 0 0 0 1 "$steps_late"
		return
	fi
	step "$@"
	steps_usual=$((steps_usual + usual)) steps_took=$((steps_took + SECONDS - started))
}

# Prints the seconds that a step is expected to take. A quick machine gets no credit, as a step may wait for servers.
steps_expect() { # usual seconds
	echo $((steps_took > steps_usual && steps_usual > 0 ? $1 * steps_took / steps_usual : $1))
}

steps_at_once() { # FUNCTION...
	local function
	for function in "$@"; do
		(steps_beside=yes && "$function") &
	done
	wait
}

# Prints the lines of a step's output that name failures, as tally.sh writes them, then the first 40 lines with what these
# tests printed; without such lines the output's end.
steps_failures() { # name
	local log=$steps_dir/$1.log lines
	lines=$(awk '/^[^ ]/ { show = /[1-9][0-9]* failed|FAILED$|; it / && !/^[0-9]+ passed,/ } show { print }' "$log")
	printf '\n==== %s: failures ====\n' "$1"
	if [ -z "$lines" ]; then
		tail -n 20 "$log"
		return
	fi
	grep -v '^ ' <<<"$lines"
	grep '^ ' <<<"$lines" | head -n 40
}

steps_end() {
	local name seconds p f s why passed=0 failed=0 skipped=0
	while IFS=$'\t' read -r name seconds p f s why; do
		[ "$f" = 0 ] || steps_failures "$name"
	done <"$steps_dir/steps"
	printf '\n==== summary ====\n'
	while IFS=$'\t' read -r name seconds p f s why; do
		printf '%-13s %5d s   %s\n' "$name" "$seconds" "$(steps_sum "$p" "$f" "$s")${why:+: $why}"
		passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	done <"$steps_dir/steps"
	steps_sum "$passed" "$failed" "$skipped"
	[ "$failed" = 0 ] && [ -s "$steps_dir/steps" ]
}
