#!/bin/bash
# Builds etcd, kube-apiserver and kubectl for the end-to-end tests (see cluster.sh), once, from the Go modules beside
# this file, which pin each version and checksum. place.sh names the folder for them. The first build takes a quarter of
# an hour and 5 GB of disk; with Go's caches warm, a build takes half a minute. The last line says how long it took.
#
# usage: build.sh [NAME...]    (builds only these programs)
set -eu

# shellcheck source-path=SCRIPTDIR
. "${0%/*}/place.sh"
here=$(realpath "${0%/*}")

link_flags() {
	local package rest=${kube_version#*.} flags="-s -w"
	for package in component-base/version client-go/pkg/version; do # /version answers with the second one
		flags="$flags -X k8s.io/$package.gitVersion=v$kube_version"
		flags="$flags -X k8s.io/$package.gitMajor=${kube_version%%.*} -X k8s.io/$package.gitMinor=${rest%%.*}"
	done
	echo "$flags"
}

[ $# != 0 ] || set -- etcd kube-apiserver kubectl
echo "etcd $kube_etcd, Kubernetes $kube_version"
programs_build "$kube_bin" "$(link_flags)" "${@/#/$here/}"
