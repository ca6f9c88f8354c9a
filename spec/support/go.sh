#!/bin/sh
# Prints the path of a go command that is new enough for client-go: the one on PATH, or one that is fetched once.
# Debian's Go is too old, but it can fetch Go's toolchain module from the Go module proxy, and check it by the checksum
# database. The toolchain, 250 MB, is kept in $EVREC_CACHE (by default in evrec/ below $XDG_CACHE_HOME or ~/.cache).
set -eu

MINOR=26 # the go.mod files ask for 1.26.0
WANT=1.26.8

here=${0%/*}

new_enough() { # COMMAND
	minor=$(GOTOOLCHAIN=local "$1" env GOVERSION 2>/dev/null | sed -n 's/^go1\.\([0-9]*\).*/\1/p')
	[ "${minor:-0}" -ge "$MINOR" ]
}

there() { # COMMAND: if it is new enough, prints its path and ends the script
	if path=$(command -v "$1") && new_enough "$path"; then
		echo "$path"
		exit 0
	fi
}

there go
CACHE=${EVREC_CACHE:-${XDG_CACHE_HOME:-${HOME:?is not set; set EVREC_CACHE}/.cache}/evrec}
mkdir -p "$CACHE"
CACHE=$(cd "$CACHE" && pwd)
root=$CACHE/go-$WANT
there "$root/bin/go"

"$here/packages.sh" go >&2
echo "evrec: fetching Go $WANT" >&2
work=$(mktemp -d "$CACHE/go.XXXXXX")
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

module=golang.org/toolchain@v0.0.1-go$WANT.$(go env GOHOSTOS)-$(go env GOHOSTARCH)
mkdir "$work/module"
(cd "$work/module" && env -u GOROOT GO111MODULE=on GOFLAGS=-modcacherw GOWORK=off GOTOOLCHAIN=local \
	GOMODCACHE="$work" GOPATH="$work" GOCACHE="$work/cache" go mod download "$module" >&2)
chmod +x "$work/$module"/bin/* "$work/$module"/pkg/tool/*/*
# Another run may have put it there meanwhile.
mv -T "$work/$module" "$root" 2>/dev/null || [ -x "$root/bin/go" ]
there "$root/bin/go"
echo "evrec: $root/bin/go does not run" >&2
exit 1
