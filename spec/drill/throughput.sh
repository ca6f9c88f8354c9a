#!/bin/bash
# Measures how many events a second go into an API server of its own, beside h2load, and how long recording calls take
# at worst while that server is frozen. People judge the figures; the script fails only if events are missing.
#
# usage: throughput.sh BUILD    (from the top of the repository)
#
# THROUGHPUT_EVENTS (50000)  events in a round
# THROUGHPUT_ROUNDS (3)      rounds; 0: only the recording calls
set -eu

# shellcheck source-path=SCRIPTDIR
. "${0%/*}/stage.sh"
build=$1
events=${THROUGHPUT_EVENTS:-50000} rounds=${THROUGHPUT_ROUNDS:-3}

mkdir -p "$build/drill"
# shellcheck disable=SC2046 # flags
gcc -std=gnu11 -O2 -Wall -Wextra -fPIC -shared $(pkg-config --cflags lua5.4) -o "$build/drill/ticks.so" spec/drill/ticks.c
stage_begin "$build" 3600
uptime
# The ways run in turns, so that all meet the same noise, and each with an empty server, as a full one is slower.
results=$EVREC_E2E_DIR/throughput
for _ in $(seq "$rounds"); do
	for way in $(luajit spec/drill/throughput.lua list); do
		stage_renew
		stage_run timeout -k 5 600 luajit spec/drill/throughput.lua "$way" "$events" "$results"
	done
done
[ "$rounds" = 0 ] || luajit spec/drill/throughput.lua medians "$results"
worst_call() {
	LUA_CPATH="$build/5.4/?.so;$build/drill/?.so;;" stage_run timeout -k 5 600 "$@" lua5.4 spec/drill/worst_call.lua 100000 5
}
worst_call env
if chrt -f 10 true 2>/dev/null; then
	echo "the same with a priority that keeps the machine's other work away (chrt -f 10)"
	worst_call chrt -f 10
fi
uptime
