#!/bin/bash
# The fire drills, against an API server of their own, which is built (minutes, once), started and stopped.
#
# usage: drill.sh BUILD    (from the top of the repository)
#
# DRILL_RUNS (1): how often each is performed. DRILL_SCALE (1): what their seconds and numbers are multiplied with.
# DRILL: only those whose name this extended regular expression finds. DRILL_SEED: of the proxy's choices. The table
# is BUILD/drill/drills.md, the logs are beside it. EVREC_SANITIZER: `luajit` runs under this one.
set -eu

# shellcheck source-path=SCRIPTDIR
. "${0%/*}/stage.sh"
build=$1
runs=${DRILL_RUNS:-1} scale=${DRILL_SCALE:-1} seed=${DRILL_SEED:-$RANDOM}
out=$build/drill
result=$out/result.json results=$out/results.json

start_proxy() {
	mkfifo "$EVREC_E2E_DIR/life"
	: >"$EVREC_E2E_DIR/ports"
	"$out/proxy" "$EVREC_E2E_CLUSTER" "$seed" <"$EVREC_E2E_DIR/life" >"$EVREC_E2E_DIR/ports" &
	stage_job $!
	exec 8>"$EVREC_E2E_DIR/life" # it ends with this script, however that ends
	until read -r EVREC_DRILL_PROXY EVREC_DRILL_CONTROL <"$EVREC_E2E_DIR/ports"; do
		kill -0 $!
		sleep 0.1
	done
	export EVREC_DRILL_PROXY EVREC_DRILL_CONTROL
}

# A drill that broke off may have left the server in any state.
mend() {
	"$stage_cluster" thaw-etcd "$EVREC_E2E_CLUSTER"
	"$stage_cluster" restart "$EVREC_E2E_CLUSTER"
}

# Reports of a sanitizer from the first on, or else the end.
show() { # log
	{ sed -n '/Sanitizer/,$p' "$1" | grep . || tail -n 20 "$1"; } | head -n 80 | sed 's/^/    /'
}

perform() { # name environment
	local log="$out/${1//[ \/]/-}.log" code=0
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
	[ "$code" = 0 ] || show "$log"
}

mkdir -p "$out"
rm -f "$results"
(cd spec/drill/proxy && GOCACHE="$OLDPWD/$out/go" GOFLAGS=-buildvcs=false GOWORK=off go build -o "$OLDPWD/$out/proxy" .)
stage_begin "$build" $((600 + runs * 1800))
start_proxy

echo "DRILL_SCALE=$scale DRILL_SEED=$seed"
luajit spec/drill/report.lua heads
plans=$(luajit spec/drill/perform.lua list | grep -E -- "${DRILL-}")
for _ in $(seq "$runs"); do
	while IFS=$'\t' read -r name environment; do
		perform "$name" "$environment"
	done <<<"$plans"
done
luajit spec/drill/report.lua table "$results" "$out/drills.md"
