#!/bin/bash
# Builds the oracle, which runs client-go, and compares evrec with it; or writes the vectors anew. See README.md. DIR has
# evrec's programs, `trace_runner` and `series_runner`, and gets the oracle and all output.
#
# usage: conformance.sh DIR compare [NAME=VALUE]...    (the settings of run.lua)
#        conformance.sh DIR replay FILE
#        conformance.sh DIR vectors
set -eu

here=${0%/*}
# shellcheck source-path=SCRIPTDIR
. "$here/../support/tally.sh"
mkdir -p "$1"
dir=$(cd "$1" && pwd)
what=$2
shift 2

export CGO_ENABLED=0 GOFLAGS=-buildvcs=false
# Go keeps its downloads below HOME, and write-protects them unless it is told -modcacherw. `make clean` must be able to
# remove them.
[ -n "${HOME-}" ] || export HOME="$PWD/build/home" GOFLAGS="$GOFLAGS -modcacherw"
go=$("$here/../support/go.sh")

go_form() {
	[ -z "$("$("$go" env GOROOT)/bin/gofmt" -l "$here/oracle")" ] && (cd "$here/oracle" && "$go" vet ./...)
}

same_vectors() {
	mkdir -p "$dir/vectors"
	lua5.4 "$here/vectors.lua" "$dir" "$dir/vectors" && diff -rq "$dir/vectors" "$here/vectors"
}

# Adds the traces that run.lua counted to this script's tally.
compare() { # KIND [NAME=VALUE]...
	lua5.4 "$here/run.lua" "programs=$dir" "kind=$1" "${@:2}" | tee "$dir/compare.log"
	read -r passed failed <<<"$(sed -n 's/^traces: \([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$dir/compare.log")"
	tally_passed=$((tally_passed + ${passed:-0}))
	tally_failed=$((tally_failed + ${failed:-1}))
}

(cd "$here/oracle" && "$go" build -o "$dir/oracle" .)
case $what in
vectors) exec lua5.4 "$here/vectors.lua" "$dir" "$here/vectors" ;;
replay) exec lua5.4 "$here/run.lua" "programs=$dir" "replay=$1" ;;
esac
tally_begin "$dir/log"
tally_check "gofmt and go vet" go_form
tally_check "make vectors would write the same vectors" same_vectors
compare record "jobs=$(nproc)" "$@"
compare series "jobs=$(nproc)" "$@"
tally_end
