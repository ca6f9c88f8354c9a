# shellcheck shell=bash
# Runs steps one after the other, and sums them up: to be read (`.`) by a bash script at the top of the repository,
# which then calls
#
#   steps_begin DIR [LIMIT]   DIR gets the output of each step, as NAME.log. LIMIT: the seconds for all paced steps
#   step NAME COMMAND...      runs the command and prints how long it took; later steps run even if it fails
#   paced_step SECONDS NAME COMMAND...
#                             a step that takes SECONDS on a usual machine. If it would end after LIMIT at the pace of
#                             the paced steps so far, then neither it nor a later one runs; each counts as a skipped test
#   steps_end                 prints a line for each step, then the sum, `N passed, N failed[, N skipped]`;
#                             returns 1 if anything failed or no step ran
#
# A step counts the tests of the last line `N passed, N failed[, N skipped]` in its output; without such a line it
# counts as one test. A command that fails without a failed test counts as one failed.

steps_begin() {
	steps_dir=$1 steps_limit=${2-0} steps_usual=0 steps_took=0 steps_late='' steps_passed=0 steps_failed=0 steps_skipped=0
	steps_lines=()
	mkdir -p "$steps_dir"
}

steps_sum() { # passed failed skipped
	printf '%d passed, %d failed%s\n' "$1" "$2" "$([ "$3" = 0 ] || echo ", $3 skipped")"
}

step() {
	local name=$1 log=$steps_dir/$1.log started=$SECONDS code=0 sum p f s
	shift
	printf '\n==== %s ====\n' "$name"
	"$@" </dev/null 2>&1 | tee "$log"
	code=${PIPESTATUS[0]}
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

steps_add() { # name seconds passed failed skipped [why]
	local line
	steps_passed=$((steps_passed + $3)) steps_failed=$((steps_failed + $4)) steps_skipped=$((steps_skipped + $5))
	line=$(printf '%-13s %5d s   %s' "$1" "$2" "$(steps_sum "$3" "$4" "$5")${6:+: $6}")
	printf -- '---- %s\n' "$line"
	steps_lines+=("$line")
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

steps_end() {
	printf '\n==== summary ====\n'
	printf '%s\n' "${steps_lines[@]}"
	steps_sum "$steps_passed" "$steps_failed" "$steps_skipped"
	[ "$steps_failed" = 0 ] && [ ${#steps_lines[@]} != 0 ]
}
