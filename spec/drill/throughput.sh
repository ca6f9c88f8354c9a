#!/bin/bash
# Measures how many events a second go into an API server and a collector of its own, beside h2load; how much processor
# time a write and a log record cost; and how long recording calls take at worst while the API server is frozen, and how
# often they wait or meet a page fault. People judge the figures; the script fails only if events are missing.
#
# usage: throughput.sh BUILD    (from the top of the repository)
#
# THROUGHPUT_EVENTS (50000)  events in a round; ten times as many for the collector, and 1,000,000 for the processor time
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

# The collector has one core, and who sends to it another, as the machines of both would be others: the question is
# whether evrec keeps a collector as busy as h2load does.
EVREC_COLLECTOR_REQUESTS_ONLY=yes stage_begin_collector 3600
sender=
if taskset -c 0 true && taskset -c 1 true; then
	taskset -acp 0 "$(cat "$EVREC_E2E_COLLECTOR/collector.pid")" >/dev/null
	sender='taskset -c 1'
fi
results=$EVREC_E2E_DIR/throughput-otlp
for _ in $(seq "$rounds"); do
	for way in $(luajit spec/drill/throughput_otlp.lua list); do
		# shellcheck disable=SC2086 # words
		stage_run timeout -k 5 600 $sender luajit spec/drill/throughput_otlp.lua "$way" "${events}0" "$results"
	done
done
[ "$rounds" = 0 ] || luajit spec/drill/throughput_otlp.lua medians "$results"
# shellcheck source=/dev/null
. "$EVREC_E2E_COLLECTOR/env"
for encoding in protobuf json; do
	for compression in none gzip; do
		# shellcheck disable=SC2086 # words
		stage_run timeout -k 5 600 $sender "$build/bench/otlp" "$EVREC_OTLP_PLAIN" $encoding $compression 1000000
	done
done

worst_call() {
	LUA_CPATH="$build/5.4/?.so;$build/drill/?.so;;" stage_run timeout -k 5 600 "$@" lua5.4 spec/drill/worst_call.lua 100000 5
}
worst_call env
if chrt -f 10 true 2>/dev/null; then
	echo "the same with a priority that keeps the machine's other work away (chrt -f 10)"
	worst_call chrt -f 10
fi
uptime
