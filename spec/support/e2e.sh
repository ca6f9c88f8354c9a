#!/bin/bash
# Runs spec/e2e on each Lua given, against the API server of $KUBECONFIG. If that is not set, it builds an API server
# (minutes, once), starts it, and stops it at the end.
#
# usage: e2e.sh BUILD LUA...
#
# The specs' environment has kubectl on PATH, KUBECONFIG, and EVREC_E2E_DIR, a folder that is removed afterwards; and
# EVREC_E2E_COLLECTOR, the folder of otel/collector.sh. With a server of its own it also has EVREC_E2E_CLUSTER, the folder
# of kube/cluster.sh, and the variables of that folder's env.
#
# EVREC_OTLP_EVENTS (50000)  the events that otlp_records_spec.lua sends in each encoding
set -eu

here=${0%/*}
# shellcheck source-path=SCRIPTDIR
. "$here/tally.sh"
build=$1
shift

EVREC_E2E_DIR=$(mktemp -d "${TMPDIR:-/tmp}/evrec-e2e.XXXXXX")
export EVREC_E2E_DIR
# Workers of nginx have a user of their own, who must reach the folders that specs make in it.
chmod 711 "$EVREC_E2E_DIR"
export EVREC_E2E_COLLECTOR="$EVREC_E2E_DIR/collector"
cluster=
finish() {
	trap '' HUP INT TERM
	[ -z "$cluster" ] || "$here/kube/cluster.sh" stop "$cluster" || true
	"$here/otel/collector.sh" stop "$EVREC_E2E_COLLECTOR" || true
	rm -rf "$EVREC_E2E_DIR"
}
trap finish EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

export TEST_TIMEOUT="${TEST_TIMEOUT:-600}"
# shellcheck source=spec/support/kube/place.sh
. "$here/kube/place.sh"
if [ -n "${KUBECONFIG-}" ]; then
	command -v kubectl >/dev/null || { "$here/kube/build.sh" kubectl && PATH=$PATH:$kube_bin; }
else
	"$here/kube/build.sh"
	PATH=$kube_bin:$PATH
	cluster=$EVREC_E2E_DIR/cluster
	"$here/kube/cluster.sh" start "$cluster"
	set -a
	# shellcheck source=/dev/null
	. "$cluster/env"
	set +a
	export EVREC_E2E_CLUSTER="$cluster"
fi
"$here/otel/build.sh"
"$here/otel/collector.sh" start "$EVREC_E2E_COLLECTOR"

tally_begin "$build/log"
for lua in "$@"; do
	tally_specs "$build" "$lua" e2e spec/e2e
done
tally_end
