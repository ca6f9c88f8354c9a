# shellcheck shell=bash
# Runs an API server for as long as a script runs: to be read (`.`) by the script, from the top of the repository.
#
#   stage_begin BUILD SECONDS   builds the server (minutes, once) and starts it, for so many seconds at most; sets
#                               EVREC_E2E_DIR, a folder that is removed afterwards, EVREC_E2E_CLUSTER, KUBECONFIG, Lua's
#                               paths, and PATH, with kubectl in it
#   stage_begin_collector SECONDS
#                               the same for a collector; sets EVREC_E2E_COLLECTOR
#   stage_renew                 replaces the server by an empty one, at another address
#   stage_job PID               this process is ended with the script
#   stage_run COMMAND...        runs the command and waits for it; a signal to the script ends both at once
stage_cluster=spec/support/kube/cluster.sh
stage_collector=spec/support/otel/collector.sh
stage_jobs=
stage_running=

stage_end() {
	trap '' HUP INT TERM
	# shellcheck disable=SC2086 # a list
	[ -z "$stage_jobs$stage_running" ] || kill $stage_jobs $stage_running 2>/dev/null || true
	"$stage_cluster" stop "$EVREC_E2E_CLUSTER" || true
	"$stage_collector" stop "$EVREC_E2E_COLLECTOR" || true
	rm -rf "$EVREC_E2E_DIR"
}

stage_renew() {
	"$stage_cluster" stop "$EVREC_E2E_CLUSTER"
	"$stage_cluster" start "$EVREC_E2E_CLUSTER" >/dev/null
}

stage_job() {
	stage_jobs="$stage_jobs $1"
}

stage_run() {
	local code=0
	"$@" &
	stage_running=$!
	wait "$stage_running" || code=$?
	stage_running=
	return "$code"
}

stage_begin() {
	EVREC_E2E_DIR=$(mktemp -d "${TMPDIR:-/tmp}/evrec-drill.XXXXXX")
	export EVREC_E2E_DIR EVREC_E2E_CLUSTER="$EVREC_E2E_DIR/cluster" EVREC_E2E_COLLECTOR="$EVREC_E2E_DIR/collector"
	trap stage_end EXIT
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 143' TERM
	spec/support/kube/build.sh
	. spec/support/kube/place.sh
	PATH=$kube_bin:$PATH
	export EVREC_CLUSTER_LIFE=$2
	"$stage_cluster" start "$EVREC_E2E_CLUSTER"
	export KUBECONFIG="$EVREC_E2E_CLUSTER/kubeconfig.yaml"
	export LUA_PATH="./lua/?.lua;./lua/?/init.lua;./spec/drill/?.lua;./spec/support/?.lua;;"
	export LUA_CPATH="$1/luajit/?.so;;" TZ=UTC
}

stage_begin_collector() {
	spec/support/otel/build.sh
	EVREC_COLLECTOR_LIFE=$1 "$stage_collector" start "$EVREC_E2E_COLLECTOR"
}
