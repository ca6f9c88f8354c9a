# shellcheck shell=bash
# Runs the stand-in for an API server for as long as a script runs: to be read (`.`) by the script, from the top of the
# repository.
#
#   stage_begin BUILD   builds and starts the server; sets EVREC_E2E_DIR, a folder that is removed afterwards,
#                       HOSTS_SERVER, the server's folder, HOSTS_SERVER_PID, its process, HOSTS_BUILD, and Lua's paths

stage_end() {
	trap '' HUP INT TERM
	[ -z "${HOSTS_SERVER_PID-}" ] || kill "$HOSTS_SERVER_PID" 2>/dev/null || true
	rm -rf "$EVREC_E2E_DIR"
}

stage_begin() {
	local go
	go=$(spec/support/go.sh)
	mkdir -p "$1/hosts"
	(cd spec/hosts/server &&
		GOCACHE="$OLDPWD/$1/drill/go" GOFLAGS=-buildvcs=false GOWORK=off "$go" build -o "$OLDPWD/$1/hosts/server" .)
	EVREC_E2E_DIR=$(mktemp -d "${TMPDIR:-/tmp}/evrec-hosts.XXXXXX")
	# The users of nginx and HAProxy reach their folders.
	chmod 711 "$EVREC_E2E_DIR"
	trap stage_end EXIT
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 143' TERM
	export EVREC_E2E_DIR HOSTS_SERVER_PID HOSTS_SERVER="$EVREC_E2E_DIR/server"
	mkdir "$HOSTS_SERVER"
	mkfifo "$HOSTS_SERVER/life"
	"$1/hosts/server" "$HOSTS_SERVER" <"$HOSTS_SERVER/life" >"$1/hosts/server.log" 2>&1 &
	HOSTS_SERVER_PID=$!
	disown "$HOSTS_SERVER_PID" # bash says nothing about its end
	exec 8>"$HOSTS_SERVER/life" # the server ends when this script does, for whatever reason
	until [ -s "$HOSTS_SERVER/port" ]; do
		kill -0 "$HOSTS_SERVER_PID"
		sleep 0.05
	done
	export LUA_PATH="./lua/?.lua;./lua/?/init.lua;./spec/hosts/?.lua;./spec/drill/?.lua;./spec/support/?.lua;;"
	export HOSTS_BUILD=$1 LUA_CPATH="$1/luajit/?.so;;" TZ=UTC
}
