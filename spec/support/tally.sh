# shellcheck shell=sh
# Counts tests: to be read (`.`) by a script, which then runs
#
#   tally_begin DIR                DIR gets the output of each program
#   tally_run NAME COMMAND...      runs a program that prints TAP; prints one line at its end, and the
#                                  output of failed tests; may return before that
#   tally_specs BUILD LUA KIND FOLDER...
#                                  runs the specs in the folders, each in a process of its own
#   tally_check NAME COMMAND...    waits for the programs, and runs a command that is one test: it passes if its exit code is 0
#   tally_end                      waits for the programs; prints the sum, `N passed, N failed`; 1 if anything
#                                  failed
#
# Each program gets an empty folder as its TMPDIR. A program that leaves a file there, fails without a failed test, runs
# no test, or stops before the end of its TAP plan counts as one failed.
#
# TALLY_JOBS     the programs (1) that may run at once
# TEST_TIMEOUT   the seconds (120) that a program may take
# TALLY_SKIP     a file of lines `NAME: REASON`: a test with such a NAME is not run, and counted as skipped

tally_begin() {
	tally_dir=$1 tally_passed=0 tally_failed=0 tally_skipped=0 tally_queue=
	mkdir -p "$tally_dir"
}

tally_run() {
	tally_name=$1
	shift
	if tally_left_out 32; then
		return
	fi
	tally_log=$tally_dir/$(echo "$tally_name" | tr ' /' '--').log
	tally_program "$@" >"$tally_log.line" &
	tally_queue="$tally_queue $!:$tally_log"
	# shellcheck disable=SC2086 # words
	set -- $tally_queue
	[ $# -lt "${TALLY_JOBS:-1}" ] || tally_next
}

# Runs a program, prints its line and the output of its failed tests, and writes `passed failed skipped` to a file.
tally_program() { # COMMAND...
	tally_code=0
	tally_tmp=$(mktemp -d -p /tmp) # short, and without a space, as specs put paths into commands
	chmod 1777 "$tally_tmp" # as /tmp: tests run programs as other users
	# A shell has the programs that it does not wait for ignore these signals.
	timeout -k 5 "${TEST_TIMEOUT:-120}" env --default-signal=INT,QUIT TMPDIR="$tally_tmp" \
		"$@" </dev/null >"$tally_log" 2>&1 || tally_code=$?
	tally_left=$(ls -A "$tally_tmp" 2>/dev/null) || tally_left="nothing, not even the folder"
	chmod -R u+rwX "$tally_tmp" 2>/dev/null || true
	rm -rf "$tally_tmp" || true
	# shellcheck disable=SC2046 # three numbers and a word
	set -- $(tally_count <"$tally_log") ''
	if [ "$1$2$3" = 000 ]; then
		tally_why="ran no test"
	elif [ "$4" != whole ]; then
		tally_why="ended before its plan was through"
	elif [ "$tally_code" != 0 ] && [ "$2" = 0 ]; then
		tally_why="failed outside its tests"
	elif [ -n "$tally_left" ]; then
		tally_why="left behind in TMPDIR: $(echo "$tally_left" | tr '\n' ' ')"
	else
		tally_why=
	fi
	printf '%-32s %s\n' "$tally_name" \
		"$(tally_sum "$1" "$2" "$3")${tally_why:+; it $tally_why (exit $tally_code)}"
	if [ -n "$tally_why" ]; then
		tail -n 150 "$tally_log" | sed 's/^/    /'
	elif [ "$2" != 0 ]; then
		awk '/^(not )?ok |^1\.\.[0-9]/ { show = /^not ok/ && !/# SKIP/ } show { print "    " $0 }' "$tally_log"
	fi
	echo "$1 $(($2 + (${#tally_why} != 0))) $3" >"$tally_log.counts"
}

# Waits for the program that was started first, so that the lines come in the order of the calls.
tally_next() {
	tally_job=${tally_queue# }
	tally_job=${tally_job%% *}
	tally_queue=${tally_queue#" $tally_job"}
	wait "${tally_job%%:*}" || true
	tally_job=${tally_job#*:}
	cat "$tally_job.line"
	read -r tally_p tally_f tally_s <"$tally_job.counts"
	tally_passed=$((tally_passed + tally_p)) tally_failed=$((tally_failed + tally_f))
	tally_skipped=$((tally_skipped + tally_s))
	rm "$tally_job.line" "$tally_job.counts"
}

tally_specs() {
	tally_build=$1 tally_lua=$2 tally_kind=$3
	shift 3
	case $tally_lua in
	luajit) tally_command=luajit ;;
	*) tally_command=lua$tally_lua ;;
	esac
	tally_found=$(find "$@" -name '*_spec.lua' 2>/dev/null | sort)
	[ -n "$tally_found" ] || tally_check "$tally_lua: specs in $*" false
	for tally_spec in $tally_found; do
		tally_name=${tally_spec##*/}
		tally_run "$tally_lua ${tally_kind:+$tally_kind }${tally_name%.lua}" env \
			LUA_PATH="./lua/?.lua;./lua/?/init.lua;./spec/support/?.lua;;" LUA_CPATH="$tally_build/$tally_lua/?.so;;" \
			"$tally_command" spec/support/run_specs.lua -o TAP "$tally_spec"
	done
}

tally_check() {
	tally_name=$1
	shift
	tally_wait
	if tally_left_out 60; then
		return
	fi
	tally_log=$tally_dir/$(echo "$tally_name" | tr ' /' '--').log
	printf '%-60s ' "$tally_name"
	if "$@" </dev/null >"$tally_log" 2>&1; then
		tally_passed=$((tally_passed + 1))
		echo ok
	else
		tally_failed=$((tally_failed + 1))
		echo FAILED
		tail -n 150 "$tally_log" | sed 's/^/    /'
	fi
}

# Whether TALLY_SKIP names the test $tally_name; if so, counts it, and prints the reason behind $1 columns.
tally_left_out() {
	tally_why=$([ -z "${TALLY_SKIP-}" ] || sed -n "s|^$tally_name: ||p" "$TALLY_SKIP")
	[ -n "$tally_why" ] || return 1
	tally_skipped=$((tally_skipped + 1))
	printf "%-$1s skipped: %s\n" "$tally_name" "$tally_why"
}

# Reads TAP; prints how many passed, failed and were skipped, and `whole` if the plan names as many tests. cmocka
# reports a skipped test as `not ok ... # SKIP`.
tally_count() {
	awk '/^1\.\.[0-9]+/ { plan = substr($1, 4); plans++ }
		/^(not )?ok / { tests++ }
		/^(not )?ok .*# SKIP/ { skipped++; next }
		/^ok / { passed++ }
		/^not ok / { failed++ }
		END { print passed + 0, failed + 0, skipped + 0, plans == 1 && plan == tests ? "whole" : "part" }'
}

tally_sum() { # passed failed skipped
	echo "$1 passed, $2 failed$([ "$3" = 0 ] || echo ", $3 skipped")"
}

tally_wait() {
	while [ -n "$tally_queue" ]; do
		tally_next
	done
}

tally_end() {
	tally_wait
	tally_sum "$tally_passed" "$tally_failed" "$tally_skipped"
	[ "$tally_failed" = 0 ] && [ "$tally_passed" != 0 ]
}
