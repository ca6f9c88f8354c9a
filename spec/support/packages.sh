#!/bin/sh
# Installs the Debian packages that groups of targets need, and removes none. No other file names them. Prints the
# packages that it installs; prints nothing if none is missing.
#
# usage: packages.sh GROUP...          (see below)
#        packages.sh --list GROUP...   prints the names, and installs nothing
set -eu

die() {
	printf 'evrec: %s\n' "$@" >&2
	exit 1
}

# `a|b`: either is enough. If both are missing, a is installed, or b if a conflicts with an installed package.
# `command:c`: a command c from anywhere is enough.
packages_of() {
	case $1 in
	core) echo "gcc make libc6-dev pkg-config libcurl4-openssl-dev libjansson-dev libxxhash-dev libsqlite3-dev zlib1g-dev" ;;
	build) echo "$(packages_of core) liblua5.4-dev liblua5.3-dev libluajit2-5.1-dev|libluajit-5.1-dev" ;;
	# A Lua with the command evrec.
	5.4 | 5.3) echo "liblua$1-dev lua$1 lua-cjson lua-yaml lua-argparse" ;;
	luajit) echo "libluajit2-5.1-dev|libluajit-5.1-dev luajit2|luajit lua-cjson lua-yaml lua-argparse" ;;
	demo) echo "lua5.4 lua-cjson lua-yaml lua-argparse" ;;
	# luajit2, as nginx's Lua module conflicts with luajit.
	test) echo "lua5.4 lua5.3 luajit2|luajit lua-busted lua-cjson lua-yaml lua-argparse libcmocka-dev libssl-dev g++" \
		"locales python3-prometheus-client libcurl3-gnutls" ;;
	lint) echo "clang clang-format clang-tidy lua-check shellcheck git" ;;
	fuzz) echo "clang libclang-rt-14-dev" ;;
	dist) echo "git zip" ;;
	rock) echo "luarocks lua5.4 lua5.3 luajit2|luajit clang liblua5.1-0-dev liblua5.2-dev dpkg-dev" ;;
	e2e) echo "nginx libnginx-mod-http-lua haproxy curl openssl procps lua-sec lua-socket util-linux chromium" ;;
	conformance) echo "lua5.4 lua-cjson" ;;
	go) echo "golang-go|command:go ca-certificates" ;;
	bench) echo "lua5.4 lua5.3 luajit2|luajit valgrind libc-devtools" ;;
	# nginx only for one drill; before luajit2, as in e2e.
	drill) echo "nginx libnginx-mod-http-lua luajit2|luajit lua-cjson lua-socket libfaketime curl openssl procps" ;;
	# nginx before luajit2, as in e2e.
	hosts) echo "nginx libnginx-mod-http-lua haproxy luajit2|luajit lua-busted lua-cjson lua-socket curl strace wrk" ;;
	throughput) echo "lua5.4 nghttp2-client" ;;
	arm64) echo "gcc-aarch64-linux-gnu qemu-user" ;;
	s390x) echo "gcc-s390x-linux-gnu qemu-user" ;;
	# Not for this machine: sysroot.sh unpacks them in a folder.
	sysroot) echo "libc6-dev libcurl4-openssl-dev libjansson-dev libxxhash-dev libsqlite3-dev zlib1g-dev liblua5.4-dev" \
		"libcmocka-dev libssl-dev lua5.4 lua-busted lua-cjson lua-yaml lua-argparse" ;;
	*) die "no group of packages is called '$1'" ;;
	esac
}

list=
if [ "${1-}" = --list ]; then
	list=yes
	shift
fi
wanted=
for group in "$@"; do
	wanted="$wanted $(packages_of "$group")"
done
if [ -n "$list" ]; then
	echo "${wanted# }"
	exit
fi

installed=
if command -v dpkg-query >/dev/null; then
	# shellcheck disable=SC2046,SC2086 # lists
	installed=$(dpkg-query -W -f ':${db:Status-Status}:${Package}:\n' $(echo $wanted | tr '|' ' ') 2>/dev/null) || true
fi

missing=
for package in $wanted; do
	there=
	for name in $(echo "$package" | tr '|' ' '); do
		case $name in
		command:*) ! command -v "${name#command:}" >/dev/null || there=yes ;;
		*) case $installed in *":installed:$name:"*) there=yes ;; esac ;;
		esac
	done
	case " $missing " in
	*" $package "*) ;;
	*) [ -n "$there" ] || missing="$missing $package" ;;
	esac
done
[ -n "$missing" ] || exit 0

# Of `a|b`, the first that can be installed beside what is there; a if none can, or the package lists are missing.
choose() {
	for name in $(echo "$1" | tr '|' ' '); do
		if [ "$1" = "$name" ] || apt-get -s --no-remove install "$name" >/dev/null 2>&1; then
			echo "$name"
			return
		fi
	done
	echo "${1%%|*}"
}

chosen=
for package in $missing; do
	chosen="$chosen $(choose "$package")"
done
command -v apt-get >/dev/null || die "no apt-get here. Please install what Debian 12 calls:$chosen"
sudo=
if [ "$(id -u)" != 0 ]; then
	# `sudo -v` asks for the password once, also if none of the user's rules needs one.
	{ command -v sudo >/dev/null && { sudo -n true 2>/dev/null || sudo -v 2>/dev/null; }; } ||
		die "not root, and sudo is not there or refuses. As root, run this, and then make again:" \
			"  apt-get install --no-install-recommends$chosen"
	sudo=sudo
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {
	$sudo env DEBIAN_FRONTEND=noninteractive ${http_proxy:+"http_proxy=$http_proxy"} \
		${https_proxy:+"https_proxy=$https_proxy"} ${no_proxy:+"no_proxy=$no_proxy"} \
		apt-get -q -y --no-remove -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@" </dev/null >>"$log" 2>&1
}

echo "evrec: installing these Debian packages:$chosen"
# shellcheck disable=SC2086 # a list
{
	# Package lists are out of date if they lack a package, or name a version that the archive no longer has.
	apt -s install $chosen || apt update || true
	apt install --no-install-recommends $chosen ||
		{ apt update && apt install --no-install-recommends $chosen; } ||
		{ cat "$log" >&2 && die "they could not be installed"; }
}
