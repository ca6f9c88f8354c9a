#!/bin/bash
# Runs the fire drills against an API server and a collector of their own, which it builds (minutes, once), starts and
# stops.
#
# usage: drill.sh BUILD    (from the top of the repository)
#
# DRILL_RUNS (1)   how often each drill is performed
# DRILL_SCALE (1)  a factor for the seconds and numbers of all drills
# DRILL            performs only the drills whose name this extended regular expression finds
# DRILL_SEED       the seed of the proxies' choices
# EVREC_SANITIZER  the sanitizer that `luajit` runs under
#
# The table of the results is BUILD/drill/drills.md; the logs are beside it.
set -eu

# shellcheck source-path=SCRIPTDIR
. "${0%/*}/stage.sh"
build=$1
runs=${DRILL_RUNS:-1} scale=${DRILL_SCALE:-1} seed=${DRILL_SEED:-$RANDOM}
out=$build/drill
result=$out/result.json results=$out/results.json

# Puts a proxy in front of a server. Sets EVREC_DRILL_<NAME>, its port for clients, and EVREC_DRILL_<NAME>_CONTROL.
start_proxy() { # NAME FOLDER URL
	local ports="$EVREC_E2E_DIR/ports-$1" clients commands
	: >"$ports"
	"$out/proxy" "$2" "$seed" "$3" <"$EVREC_E2E_DIR/life" >"$ports" 8>&- &
	stage_job $!
	until read -r clients commands <"$ports"; do
		kill -0 $!
		sleep 0.1
	done
	export "EVREC_DRILL_$1=$clients" "EVREC_DRILL_$1_CONTROL=$commands"
}

# Restarts the servers, which a drill that broke off may have left in any state.
mend() {
	"$stage_cluster" thaw-etcd "$EVREC_E2E_CLUSTER"
	"$stage_cluster" restart "$EVREC_E2E_CLUSTER"
	rm -f "$EVREC_E2E_DIR/flags" # of drill.lua: the server has none now
	"$stage_collector" restart "$EVREC_E2E_COLLECTOR" backend
	"$stage_collector" restart "$EVREC_E2E_COLLECTOR"
}

# Shows the log from a sanitizer's first report on, or its last lines if there is no report.
show() { # log
	{ sed -n '/Sanitizer/,$p' "$1" | grep . || tail -n 20 "$1"; } | head -n 80 | sed 's/^/    /'
}

perform() { # name environment
	local log="$out/${1//[ \/]/-}.log" code=0
	[ ! -t 1 ] || printf '%s ...\r' "$1" # the line of the result covers it
	# shellcheck disable=SC2086 # the environment is a list
	stage_run timeout -k 5 600 env $2 luajit spec/drill/perform.lua "$1" "$scale" "$result" \
		</dev/null >"$log" 2>&1 8>&- || code=$?
	if [ "$code" = 0 ]; then
		cat "$result" >>"$results"
	else
		luajit spec/drill/report.lua broken "$results" "$1" "$code"
		mend
	fi
	luajit spec/drill/report.lua line "$results"
	sed -n 's/^summary: /    /p' "$log"
	[ "$code" = 0 ] || show "$log"
}

mkdir -p "$out"
rm -f "$results"
go=$(spec/support/go.sh)
(cd spec/drill/proxy &&
	GOCACHE="$OLDPWD/$out/go" GOFLAGS=-buildvcs=false GOWORK=off "$go" build -o "$OLDPWD/$out/proxy" .)
stage_begin "$build" $((600 + runs * 1800))
stage_begin_collector $((600 + runs * 1800))
mkfifo "$EVREC_E2E_DIR/life"
exec 8<>"$EVREC_E2E_DIR/life" # the proxies read it, and end when this script does, for whatever reason
start_proxy PROXY "$EVREC_E2E_CLUSTER" "https://127.0.0.1:$(cat "$EVREC_E2E_CLUSTER/port")"
# shellcheck source=/dev/null
start_proxy OTLP_PROXY "$EVREC_E2E_COLLECTOR" "$(. "$EVREC_E2E_COLLECTOR/env" && echo "${EVREC_OTLP_PLAIN%/v1/logs}")"

echo "DRILL_SCALE=$scale DRILL_SEED=$seed"
luajit spec/drill/report.lua heads
plans=$(luajit spec/drill/perform.lua list | grep -E -- "${DRILL-}")
for _ in $(seq "$runs"); do
	while IFS=$'\t' read -r name environment; do
		perform "$name" "$environment"
	done <<<"$plans"
done
luajit spec/drill/report.lua table "$results" "$out/drills.md"
