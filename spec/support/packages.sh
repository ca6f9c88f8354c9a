#!/bin/sh
# Installs the Debian packages that groups of targets need: the one place that names them. Says what it installs, and
# nothing where nothing is missing.
#
# usage: packages.sh GROUP...    (see below)
set -eu

die() {
	printf 'evrec: %s\n' "$@" >&2
	exit 1
}

# `a|b`: either will do, the first is installed; `command:c`: so will a command that came in another way.
packages_of() {
	case $1 in
	build) echo "gcc make libc6-dev pkg-config libcurl4-openssl-dev libjansson-dev libxxhash-dev libsqlite3-dev" \
		"liblua5.4-dev liblua5.3-dev libluajit2-5.1-dev|libluajit-5.1-dev" ;;
	demo) echo "lua5.4 lua-cjson lua-yaml" ;;
	# luajit2, as nginx's Lua module does not go together with luajit.
	test) echo "lua5.4 lua5.3 luajit2|luajit lua-busted lua-cjson lua-yaml libcmocka-dev" \
		"python3-prometheus-client" ;;
	lint) echo "clang clang-format clang-tidy lua-check shellcheck git" ;;
	fuzz) echo "clang libclang-rt-14-dev" ;;
	rock) echo "luarocks lua5.4 lua5.3 luajit2|luajit lua-cjson" ;;
	e2e) echo "kubernetes-client|command:kubectl nginx libnginx-mod-http-lua haproxy curl procps" ;;
	conformance) echo "lua5.4 lua-cjson" ;;
	go) echo "golang-go|command:go ca-certificates" ;;
	bench) echo "lua5.4 lua5.3 luajit2|luajit valgrind libc-devtools" ;;
	drill)
		echo "luajit2|luajit lua-cjson lua-socket libfaketime golang-go|command:go" \
			"kubernetes-client|command:kubectl procps"
		;;
	throughput) echo "lua5.4 nghttp2-client" ;;
	*) die "no group of packages is called '$1'" ;;
	esac
}

wanted=
for group in "$@"; do
	wanted="$wanted $(packages_of "$group")"
done

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
	*" ${package%%|*} "*) ;;
	*) [ -n "$there" ] || missing="$missing ${package%%|*}" ;;
	esac
done
[ -n "$missing" ] || exit 0

command -v apt-get >/dev/null || die "no apt-get here. What Debian 12 calls these packages is needed:$missing"
sudo=
if [ "$(id -u)" != 0 ]; then
	command -v sudo >/dev/null || die "not root, and no sudo here. Please install:" "  apt-get install$missing"
	sudo=sudo
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {
	$sudo env DEBIAN_FRONTEND=noninteractive ${http_proxy:+"http_proxy=$http_proxy"} \
		${https_proxy:+"https_proxy=$https_proxy"} ${no_proxy:+"no_proxy=$no_proxy"} \
		apt-get -q -y -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 "$@" </dev/null >>"$log" 2>&1
}

echo "evrec: installing these Debian packages:$missing"
# shellcheck disable=SC2086 # a list
{
	# Lists that lack a package, or name versions which the archive has no more, are out of date.
	apt -s install $missing || apt update || true
	apt install --no-install-recommends $missing ||
		{ apt update && apt install --no-install-recommends $missing; } ||
		{ cat "$log" >&2 && die "they could not be installed"; }
}
