#!/bin/sh
# Prints the path of a go command that is new enough for client-go: the one on PATH if it is, else one that is fetched
# once. Debian's is too old, but it can fetch Go's own toolchain module from the Go module proxy, and have it checked by
# the checksum database. It is kept in $EVREC_CACHE (by default in evrec/ below $XDG_CACHE_HOME or ~/.cache): 250 MB.
set -eu

MINOR=26 # what the go.mod files ask for: 1.26.0
WANT=1.26.8

here=${0%/*}

new_enough() { # COMMAND
	minor=$(GOTOOLCHAIN=local "$1" env GOVERSION 2>/dev/null | sed -n 's/^go1\.\([0-9]*\).*/\1/p')
	[ "${minor:-0}" -ge "$MINOR" ]
}

there() { # COMMAND: prints its path and ends the script, where it will do
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
# Another run may have been faster.
mv -T "$work/$module" "$root" 2>/dev/null || [ -x "$root/bin/go" ]
there "$root/bin/go"
echo "evrec: $root/bin/go does not run" >&2
exit 1
