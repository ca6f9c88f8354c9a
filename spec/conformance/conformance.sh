#!/bin/bash
# Builds client-go's side and compares evrec's with it (see README.md), or makes the vectors anew. DIR holds the other
# side, `subject`, and gets all that is made.
#
# usage: conformance.sh DIR compare [NAME=VALUE]...    (settings of run.lua)
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
# Go keeps what it fetches and compiles below it; `make clean` must be able to remove that.
[ -n "${HOME-}" ] || export HOME="$PWD/build/home" GOFLAGS="$GOFLAGS -modcacherw"
go=$("$here/../support/go.sh")

form() { # of the Go sources
	[ -z "$("$("$go" env GOROOT)/bin/gofmt" -l "$here/oracle")" ] && (cd "$here/oracle" && "$go" vet ./...)
}

same_vectors() {
	mkdir -p "$dir/vectors"
	lua5.4 "$here/vectors.lua" "$dir" "$dir/vectors" && diff -rq "$dir/vectors" "$here/vectors"
}

# The sum of its traces becomes a part of this script's.
compare() {
	lua5.4 "$here/run.lua" "programs=$dir" "$@" | tee "$dir/compare.log"
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
tally_check "gofmt and go vet" form
tally_check "the vectors and scenarios are as client-go's side says" same_vectors
compare "jobs=$(nproc)" "$@"
tally_end
