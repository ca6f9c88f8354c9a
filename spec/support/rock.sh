#!/bin/bash
# Makes the rock in a copy of the repository, for each Lua given, and loads it from where it was put.
#
# usage: rock.sh LUA...
set -eu

# shellcheck source-path=SCRIPTDIR
. "${0%/*}/tally.sh"

dir=$(mktemp -d "${TMPDIR:-/tmp}/evrec-rock.XXXXXX")
trap 'rm -rf "$dir"' EXIT
cp -R csrc lua rockspec "$dir"

rock() { # LUA
	version=$1
	interpreter=lua$1
	options=()
	if [ "$1" = luajit ]; then
		version=5.1
		interpreter=luajit
		options=("LUA_INCDIR=$(pkg-config --variable=includedir luajit)")
	fi
	(cd "$dir" && luarocks --lua-version "$version" make --deps-mode=none --tree "$dir/$1" "${options[@]}") || return
	# Nothing of the checkout: from the tree, and with the libraries that the system has.
	(cd / && LUA_PATH="$dir/$1/share/lua/$version/?.lua;$dir/$1/share/lua/$version/?/init.lua;;" \
		LUA_CPATH="$dir/$1/lib/lua/$version/?.so;;" "$interpreter" -e 'print(require("evrec")._VERSION)')
}

tally_begin build/log
for lua in "$@"; do
	tally_check "the rock for $lua" rock "$lua"
done
tally_end
