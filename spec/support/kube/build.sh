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
limit=2700 # seconds for each program

say() { printf 'kube/build: %s\n' "$*"; }

missing() { # NAME...: prints the programs that do not exist
	local name
	for name in "$@"; do
		[ -x "$kube_bin/$name" ] || printf '%s ' "$name"
	done
}

finish() {
	local code=$?
	trap '' HUP INT TERM
	if [ -n "$step" ]; then
		kill "$step" 2>/dev/null || true # timeout passes the signal on to the programs that it has started
		wait "$step" || true
	fi
	rm -rf "$work"
	if [ "$code" != 0 ]; then
		{ say "failed; the end of $log:" && tail -n 30 "$log"; } >&2
	fi
	exit "$code"
}

link_flags() {
	local package rest=${kube_version#*.} flags="-s -w"
	for package in component-base/version client-go/pkg/version; do # /version answers with the second one
		flags="$flags -X k8s.io/$package.gitVersion=v$kube_version"
		flags="$flags -X k8s.io/$package.gitMajor=${kube_version%%.*} -X k8s.io/$package.gitMinor=${rest%%.*}"
	done
	echo "$flags"
}

# Closes the lock's descriptor (9>&-), so that a step that outlives a killed build does not keep others from building.
build() { # NAME
	local begun=$SECONDS
	(cd "$here/$1" && exec timeout -k 10 "$limit" "$go" build -trimpath -buildvcs=false -ldflags "$(link_flags)" \
		-o "$work/$1" .) </dev/null >>"$log" 2>&1 9>&- &
	step=$!
	wait "$step"
	step=
	mv "$work/$1" "$kube_bin/$1"
	took="${took:+$took, }$1 $((SECONDS - begun)) s"
}

[ $# != 0 ] || set -- etcd kube-apiserver kubectl
took=
if [ -n "$(missing "$@")" ]; then
	mkdir -p "$kube_bin"
	exec 9>"$kube_cache/build.lock"
	flock -n 9 || { say "another build is under way; waiting for it" && flock 9; }
	go=$("$here/../go.sh" 9>&-)
	log=$kube_cache/build.log step=
	: >"$log"
	rm -rf "$kube_cache"/build.work.* # left by a build that was killed
	work=$(mktemp -d "$kube_cache/build.work.XXXXXX")
	trap finish EXIT
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 143' TERM
	unset GOOS GOARCH GOEXPERIMENT GOROOT
	export HOME="${HOME:-$kube_cache}" GOFLAGS='' GOWORK=off GOTOOLCHAIN=local CGO_ENABLED=0 GOTMPDIR="$work"
	for name in $(missing "$@"); do # asked again, as another build may have made some meanwhile
		say "building $name (from nothing minutes; log: $log)"
		build "$name"
	done
fi
say "etcd $kube_etcd, Kubernetes $kube_version: $(
	[ -n "$took" ] && echo "built in $((SECONDS / 60)) min $((SECONDS % 60)) s ($took)" || echo "built already"
), in $kube_bin"
