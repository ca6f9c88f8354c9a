# shellcheck shell=bash
# Starts servers that live in a folder, bounded, and stops, freezes and kills them: to be read (`.`) by a script of bash
# that sets
#
#   servers        the names of the servers
#   programs       the paths of the programs that they need, from build.sh beside the script
#
# and then calls `open_folder "$@"`, which sets DIR. The file DIR/life has the seconds after which each server ends by
# itself. A server NAME has the files DIR/NAME.pid and DIR/NAME.log.
usage() { sed -n '/^# usage/,/^set/s/^# \{0,1\}//p' "$0" >&2; exit 64; }
say() {
	local path=${0%.sh}
	printf '%s: %s\n' "${path#*/support/}" "$*"
}
die() { say "$*" >&2; exit 1; }

of_process() { sed -n "s/^$2:[[:space:]]*\([^ ]*\).*/\1/p" "/proc/$1/status" 2>/dev/null || true; }
ours() { # pid: it may belong to another process by now
	# A process has no environment if it is a zombie, and while execve() reads its new program from the disk.
	for _ in {1..1000}; do
		if grep -qz . "/proc/$1/environ" 2>/dev/null || [[ $(of_process "$1" State) != [!ZX] ]]; then break; fi
		sleep 0.01
	done
	grep -qzxF "EVREC_SERVERS=$DIR" "/proc/$1/environ" 2>/dev/null
}
pid_of() (pid=$(cat "$DIR/$1.pid" 2>/dev/null) && ours "$pid" && echo "$pid")

launch() { # name command...: for a bounded time, in a session of its own, without the caller's descriptors
	name=$1 && shift
	rm -f "$DIR/$name.pid"
	# shellcheck disable=SC2016 # for the inner shell
	setsid env -i PATH="$PATH" HOME="$DIR" TMPDIR="$DIR" EVREC_SERVERS="$DIR" timeout -k 5 "$(cat "$DIR/life")" \
		sh -c 'cd "$0" && echo $$ >"$1.new" && mv "$1.new" "$1" && shift && exec "$@"' "$DIR" "$name.pid" "$@" \
		</dev/null >"$DIR/$name.log" 2>&1 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&- &
	for _ in {1..1200}; do [ -s "$DIR/$name.pid" ] || sleep 0.05; done
}

end() { # name
	if pid=$(pid_of "$1"); then
		wrapper=$(of_process "$pid" PPid)
		{ kill -TERM "$pid" && kill -CONT "$pid"; } 2>/dev/null || true
		for tenths in {1..130}; do
			ours "$pid" || ours "$wrapper" || break
			# kube-apiserver waits up to a minute for watches to end; the tests do not wait.
			[ "$tenths" != 30 ] || kill -KILL "$pid" 2>/dev/null || true
			[ "$tenths" != 130 ] || die "$1 ($pid) does not end"
			sleep 0.1
		done
	fi
	rm -f "$DIR/$1.pid"
}

end_all() {
	local name
	# shellcheck disable=SC2154 # the script that reads this file sets it
	for name in $servers; do
		end "$name"
	done
}

free_port() { # below the kernel's range of client ports, so that the port is still free at a restart
	while port=$((20000 + RANDOM % 12000)) && (: <>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do :; done
	echo "$port"
}

comes_up() { # name check...: waits until the check succeeds; fails if the process ends
	name=$1 && shift
	until pid_of "$name" >/dev/null || return 1; "$@"; do
		[ "$SECONDS" -lt 120 ] || return 1
		sleep 0.1
	done
}

signal() { # name signal states: sends the signal, and waits for one of these process states
	pid=$(pid_of "$1") || die "$1 does not run in $DIR"
	kill "-$2" "$pid"
	until [[ $(of_process "$pid" State) == ["$3"] ]]; do sleep 0.02; done
}
freeze() { signal "$1" STOP T; }
thaw() { signal "$1" CONT RSDI; }

kill_server() { # name
	pid=$(pid_of "$1") || die "$1 does not run in $DIR"
	kill -KILL "$pid"
	while ours "$pid"; do sleep 0.02; done
}

guard() { # until `trap - EXIT`, the servers end if this script ends
	trap failed EXIT
	trap 'exit 143' HUP INT TERM
}

failed() {
	trap '' HUP INT TERM
	tail -n 15 "$DIR"/*.log >&2
	for name in $servers; do
		(end "$name") || true
	done
}

# ---- certificates ----

certify() { # name authority subject extension...; authority '': signed by itself
	name=$1 ca=$2 subject=$3 && shift 3
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 \
		-keyout "$name.key" -out "$name.crt" -config <(printf '[req]\ndistinguished_name=dn\n[dn]\n') \
		-subj "$subject" ${ca:+-CA "$ca.crt" -CAkey "$ca.key"} "${@/#/-addext=}"
}

# In the folder DIR/pki, server.crt and client.crt, each of its own authority. What clients need is also in DIR.
make_certificates() { # subject of the server, subject of the client
	mkdir "$DIR/pki" && cd "$DIR/pki" || return
	certify server-ca '' "/CN=evrec test server CA" basicConstraints=critical,CA:TRUE keyUsage=critical,keyCertSign
	certify client-ca '' "/CN=evrec test client CA" basicConstraints=critical,CA:TRUE keyUsage=critical,keyCertSign
	certify_server "$1"
	certify client client-ca "$2" extendedKeyUsage=clientAuth
	cp server-ca.crt client-ca.crt client.crt client.key "$DIR"
}

certify_server() { # subject
	certify server server-ca "$1" extendedKeyUsage=serverAuth \
		subjectAltName=IP:127.0.0.1,IP:10.0.0.1,DNS:localhost,DNS:kubernetes.default.svc
}

# ---- the folder ----

# Only `start` makes the folder. Only `status` does not wait for other commands about it.
open_folder() { # command folder
	DIR=$(realpath -m "$2")
	[[ $DIR =~ ^[A-Za-z0-9_./+-]+$ ]] || die "DIR may hold letters, digits and _ . / + - only: $DIR"
	umask 077
	if [ "$1" = start ]; then
		# shellcheck disable=SC2154 # the script that reads this file sets it
		for program in $programs; do
			[ -x "$program" ] || die "$program is missing; ${0%/*}/build.sh builds it"
		done
		mkdir -p "$DIR"
		[ -f "$DIR/life" ] || [ -z "$(ls -A "$DIR")" ] || die "$DIR holds something else"
	elif [ "$1" = status ]; then
		return
	elif [ ! -f "$DIR/life" ]; then
		[ "$1" = stop ] && exit 0
		die "no servers in $2"
	fi
	{ exec 9>"$DIR/lock" && flock -w 150 9 && SECONDS=0; } || die "$DIR is in use"
}

# Cleans the folder for servers that live so many seconds at most.
begin_folder() { # seconds
	for name in $servers; do
		[ -z "$(pid_of "$name")" ] || die "$name runs already in $DIR"
	done
	rm -rf "$DIR/pki" "$DIR"/*.log
	echo "$1" >"$DIR/life"
	guard
}
