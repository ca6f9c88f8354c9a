#!/bin/bash
# Runs spec/e2e on each Lua given, against the API server of $KUBECONFIG, or where that is not set against one that it
# builds (minutes, once), starts and stops.
#
# usage: e2e.sh BUILD LUA...
#
# The specs find KUBECONFIG and EVREC_E2E_DIR, a folder that is removed afterwards; where the server is one of its own
# also EVREC_E2E_CLUSTER, which kube/cluster.sh can freeze and restart, and what that wrote to env.
set -eu

here=${0%/*}
# shellcheck source-path=SCRIPTDIR
. "$here/tally.sh"
build=$1
shift

EVREC_E2E_DIR=$(mktemp -d "${TMPDIR:-/tmp}/evrec-e2e.XXXXXX")
export EVREC_E2E_DIR
cluster=
finish() {
	trap '' HUP INT TERM
	[ -z "$cluster" ] || "$here/kube/cluster.sh" stop "$cluster" || true
	rm -rf "$EVREC_E2E_DIR"
}
trap finish EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

export TEST_TIMEOUT="${TEST_TIMEOUT:-600}"
if [ -z "${KUBECONFIG-}" ]; then
	[ -n "${EVREC_CACHE-}${XDG_CACHE_HOME-}${HOME-}" ] || export EVREC_CACHE="$PWD/build/cache"
	"$here/kube/build.sh"
	cluster=$EVREC_E2E_DIR/cluster
	"$here/kube/cluster.sh" start "$cluster"
	set -a
	# shellcheck source=/dev/null
	. "$cluster/env"
	set +a
	export EVREC_E2E_CLUSTER="$cluster"
fi

tally_begin "$build/log"
for lua in "$@"; do
	tally_specs "$build" "$lua" e2e spec/e2e
done
tally_end
