#!/bin/bash
# Prints the name of a folder with Debian's headers and libraries for another machine, of this machine's release. If
# there is none yet, it downloads and unpacks the packages; nothing is installed, and nobody needs to be root.
#
# usage: sysroot.sh ARCHITECTURE    (as Debian calls it: arm64, s390x)
set -eu

here=${0%/*}
# shellcheck source=spec/support/programs.sh
. "$here/programs.sh"
architecture=$1
packages=$("$here/packages.sh" --list sysroot)
name=$(cat "$0" - <<<"$packages" | sha256sum | cut -c 1-12)
root=$programs_cache/$architecture-$name
if [ -d "$root" ]; then
	echo "$root"
	exit
fi

mkdir -p "$programs_cache"
work=$(mktemp -d "$programs_cache/$architecture.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/state/lists/partial" "$work/cache/archives/partial" "$work/root"
: >"$work/status"
# apt with a state of its own: it takes for installed what `status` names, and that is nothing.
apt() {
	apt-get -q -y -o APT::Architecture="$architecture" -o APT::Architectures="$architecture" \
		-o Dir::State="$work/state" -o Dir::State::status="$work/status" -o Dir::Cache="$work/cache" \
		-o APT::Sandbox::User= -o Debug::NoLocking=1 "$@" </dev/null >>"$work/log" 2>&1
}
echo "evrec: unpacking Debian's libraries for $architecture in $root" >&2
# A source of packages that knows no such architecture may fail; the other command tells if one is missing.
apt update || true
# shellcheck disable=SC2086 # a list
apt install --download-only --no-install-recommends $packages || { cat "$work/log" >&2 && exit 1; }
for package in "$work"/cache/archives/*.deb; do
	dpkg-deb -x "$package" "$work/root"
done
# qemu prefers the files below the folder to this machine's: /etc and commands shall be this machine's.
rm -rf "$work/root"/{etc,var,bin,sbin,usr/sbin,usr/share/doc}
# Links to /lib would lead out of the folder.
find "$work/root" -type l -lname '/*' | while read -r link; do
	target=$(realpath -ms --relative-to="$(dirname "$link")" "$work/root$(readlink "$link")")
	ln -sfn "$target" "$link"
done
mv -T "$work/root" "$root" 2>/dev/null || [ -d "$root" ]
echo "$root"
