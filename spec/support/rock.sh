#!/bin/bash
# Tests what `make dist` packs. For each Lua given it installs the source rock from the file alone with gcc, then with
# clang and with its dependencies from a rocks server, which is a folder, and loads it. Also builds the working
# tree by `luarocks make`, and as the operator's Containerfile does, and checks that the headers of other Luas are refused.
#
# usage: rock.sh LUA...
set -eu

here=${0%/*}
# shellcheck source-path=SCRIPTDIR
. "$here/tally.sh"

dir=$(mktemp -d "${TMPDIR:-/tmp}/evrec-rock.XXXXXX")
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/tree"
cp -R csrc lua rockspec "$dir/tree"
cat >"$dir/kubeconfig" <<'END'
{ "clusters": [{ "name": "a", "cluster": { "server": "http://127.0.0.1:1" } }],
  "contexts": [{ "name": "b", "context": { "cluster": "a", "user": "c" } }],
  "users": [{ "name": "c", "user": {} }], "current-context": "b" }
END

version='' interpreter='' options=()
choose() { # LUA
	version=$1 interpreter=lua$1 options=()
	if [ "$1" = luajit ]; then
		version=5.1 interpreter=luajit
		options=("LUA_INCDIR=$(pkg-config --variable=includedir luajit)")
	fi
}

# Runs LuaRocks with a tree of its own.
rocks() { # TREE COMMAND...
	luarocks --lua-version "$version" --tree "$dir/$1" "${@:2}"
}

# Runs a script with the modules of a tree alone, from another folder, so that no file of the checkout is loaded.
run() { # TREE SCRIPT
	(cd / && LUA_PATH="$dir/$1/share/lua/$version/?.lua;$dir/$1/share/lua/$version/?/init.lua" \
		LUA_CPATH="$dir/$1/lib/lua/$version/?.so" "$interpreter" -e "$2")
}

run_file() { # TREE FILE
	run "$1" "arg = { [0] = '$2', '--version' } dofile(arg[0])"
}

from_the_checkout() { # LUA
	choose "$1"
	(cd "$dir/tree" && rocks "checkout" make --deps-mode=none "${options[@]}") &&
		run "checkout" 'print(require("evrec")._VERSION)'
}

# The compiler's optimizer works once, in the checkout: it takes half of the time.
plain=("CFLAGS=-O0 -fPIC")

from_the_file() { # LUA
	choose "$1"
	rocks "file-$1" install --deps-mode=none "$rock" "${options[@]}" "${plain[@]}" &&
		run "file-$1" 'assert(require("evrec").broadcaster {}); assert(not pcall(require, "cjson"))'
}

# Downloads and unpacks the sources of lua-cjson and argparse that Debian has, with their authors' rockspecs.
get_dependencies() {
	local file apt
	mkdir -p "$dir"/apt/{sources,state/lists/partial,cache/archives/partial} || return
	for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources}; do
		if [ -f "$file" ]; then
			sed 's/^Types:.*/Types: deb-src/; s/^deb /deb-src /' "$file" >"$dir/apt/sources/${file##*/}"
		fi
	done
	apt=(apt-get -q -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$dir/apt/sources"
		-o Dir::State="$dir/apt/state" -o Dir::Cache="$dir/apt/cache" -o APT::Sandbox::User= -o Debug::NoLocking=1)
	# Packages that are not Debian's may have no sources.
	"${apt[@]}" update || true
	mkdir "$dir/apt/argparse"
	# Debian's changes to argparse are not needed, and not every mirror has them.
	(cd "$dir/apt" && "${apt[@]}" source lua-cjson && "${apt[@]}" source --tar-only lua-argparse &&
		tar -xf lua-argparse_*.orig.tar.gz -C argparse --strip-components=1)
}

# Makes a folder with rocks of the dependencies into a rocks server.
serve_dependencies() { # LUA
	choose "$1"
	cp -R "$dir"/apt/lua-cjson-*/ "$dir/cjson-$1" || return
	if [ "$1" = luajit ]; then
		# lua-cjson has a luaL_setfuncs of its own for Lua 5.1; LuaJIT has one, too.
		sed -i 's/luaL_setfuncs/cjson_setfuncs/' "$dir/cjson-$1/lua_cjson.c" || return
	fi
	mkdir "$dir/server-$1" &&
		(cd "$dir/cjson-$1" && rocks "cjson-tree-$1" make --deps-mode=none "${options[@]}") &&
		(cd "$dir/apt/argparse" && rocks "cjson-tree-$1" make --deps-mode=none) &&
		(cd "$dir/server-$1" && rocks "cjson-tree-$1" pack lua-cjson && rocks "cjson-tree-$1" pack argparse) &&
		cp "$rock" "$dir/server-$1" &&
		luarocks-admin --lua-version "$version" make-manifest "$dir/server-$1"
}

with_dependencies() { # LUA
	choose "$1"
	serve_dependencies "$1" || return
	rocks "server-tree-$1" install --only-server "$dir/server-$1" evrec CC=clang LD=clang "${options[@]}" \
		"${plain[@]}" || return
	# Only lua-cjson reads this kubeconfig.
	run "server-tree-$1" "assert(require('evrec').sink.kubernetes { kubeconfig = '$dir/kubeconfig' })
		print(require('evrec')._VERSION)" || return
	if [ "$1" = luajit ]; then
		# The wrapper that LuaRocks makes would run Debian's lua5.1.
		run_file "server-tree-$1" "$dir/server-tree-$1/lib/luarocks/rocks-$version"/evrec/*/bin/evrec
	else
		(cd / && env -u LUA_PATH -u LUA_CPATH "$dir/server-tree-$1/bin/evrec" --version)
	fi | grep '^evrec [0-9]'
}

refused() { # INCLUDE-FOLDER
	! gcc -fsyntax-only -Icsrc -I"$1" csrc/lua/table.c 2>"$dir/refused" || return
	grep "error: #error .evrec is for Lua 5.4, Lua 5.3 and LuaJIT 2.1" "$dir/refused"
}

# Follows COPY and `RUN make` of the operator's Containerfile, in a folder in the place of the image.
image() {
	local from to made
	choose 5.4
	mkdir -p "$dir/image/evrec"
	while read -r from to; do
		cp -R "$from" "$dir/image/$to" || return
	done < <(sed -n 's/^COPY \([^-].*\) \(\/evrec.*\)$/\1 \2/p' examples/operator/Containerfile)
	made=$(sed -n "s#^RUN make -C /evrec \(.*\)=/installed\$#\1=$dir/image/installed#p" examples/operator/Containerfile)
	# shellcheck disable=SC2086 # words
	make -C "$dir/image/evrec" $made OPTIMIZE=-O0 &&
		run image/installed/usr/local 'assert(require("evrec").broadcaster {})'
}

tally_begin build/log
tally_check "the source rock" "$here/dist.sh" build/dist
rock=$(echo "$PWD"/build/dist/*.src.rock)
tally_check "luarocks make in a checkout" from_the_checkout 5.4
tally_check "the operator's image" image
for lua in "$@"; do
	tally_check "the rock for $lua, from the file alone" from_the_file "$lua"
done
tally_check "sources of lua-cjson and argparse" get_dependencies
for lua in "$@"; do
	tally_check "the rock for $lua, by clang, with what it needs from a server" with_dependencies "$lua"
done
tally_check "Lua 5.1 is refused" refused /usr/include/lua5.1
tally_check "Lua 5.2 is refused" refused /usr/include/lua5.2
tally_end
