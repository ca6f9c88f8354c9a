# shellcheck shell=bash
# Runs steps one after the other, and sums them up: to be read (`.`) by a bash script at the top of the repository,
# which then calls
#
#   steps_begin DIR           DIR gets the output of each step, as NAME.log
#   step NAME COMMAND...      runs the command and prints how long it took; later steps run even if it fails
#   steps_end                 prints a line for each step, then the sum, `N passed, N failed[, N skipped]`;
#                             returns 1 if anything failed or no step ran
#
# A step counts the tests of the last line `N passed, N failed[, N skipped]` in its output; without such a line it
# counts as one test. A command that fails without a failed test counts as one failed.

steps_begin() {
	steps_dir=$1 steps_passed=0 steps_failed=0 steps_skipped=0
	steps_lines=()
	mkdir -p "$steps_dir"
}

steps_sum() { # passed failed skipped
	printf '%d passed, %d failed%s\n' "$1" "$2" "$([ "$3" = 0 ] || echo ", $3 skipped")"
}

step() {
	local name=$1 log=$steps_dir/$1.log started=$SECONDS code=0 sum p f s line
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
	s=${s:-0}
	if [ "$code" != 0 ] && [ "$f" = 0 ]; then
		f=1
	fi
	steps_passed=$((steps_passed + p)) steps_failed=$((steps_failed + f)) steps_skipped=$((steps_skipped + s))
	line=$(printf '%-13s %5d s   %s' "$name" $((SECONDS - started)) "$(steps_sum "$p" "$f" "$s")")
	printf -- '---- %s\n' "$line"
	steps_lines+=("$line")
}

steps_end() {
	printf '\n==== summary ====\n'
	printf '%s\n' "${steps_lines[@]}"
	steps_sum "$steps_passed" "$steps_failed" "$steps_skipped"
	[ "$steps_failed" = 0 ] && [ ${#steps_lines[@]} != 0 ]
}
