#!/bin/bash
# A real API server for the end-to-end tests: etcd and kube-apiserver (see build.sh) on free loopback ports.
#
# usage: cluster.sh COMMAND DIR [FLAG...]
# start    returns when the server is ready. DIR, which must be new, empty or of an earlier cluster, then has
#            kubeconfig.json, kubeconfig.yaml  contexts: recorder (the current one: it may create and patch events, and
#            do nothing else), admin, cert (as admin, by a client certificate), nobody (no rights: 403)
#            env (KUBECONFIG= and more), recorder.token, admin.token, nobody.token, client.crt, client.key,
#            server-ca.crt, client-ca.crt, etcd.pid, etcd.log, kube-apiserver.pid, kube-apiserver.log
# stop     ends both servers; may be repeated
# status   says running (exit code 0), frozen (2) or stopped (3)
# freeze   holds kube-apiserver (SIGSTOP); thaw lets it go on
# kill     ends kube-apiserver at once (SIGKILL)
# restart  ends kube-apiserver, if it runs, and starts it again: same port, certificates, options and data. FLAG...:
#          more flags for kube-apiserver, until the next restart
# freeze-etcd, thaw-etcd  the same for etcd
# new-token, new-certificate  for the recorder, and of the server by the same authority, from the next restart on
# Environment of start: EVENT_TTL (1h), EVREC_CLUSTER_LIFE (1800: the seconds after which each server ends by itself),
# EVREC_APISERVER_FLAGS (more flags for kube-apiserver), EVREC_CACHE (see place.sh).
set -eu

# shellcheck source-path=SCRIPTDIR
. "${0%/*}/place.sh"

usage() { sed -n '/^# usage/,/^set/s/^# \{0,1\}//p' "$0" >&2; exit 64; }
say() { printf 'kube/cluster: %s\n' "$*"; }
die() { say "$*" >&2; exit 1; }

of_process() { sed -n "s/^$2:[[:space:]]*\([^ ]*\).*/\1/p" "/proc/$1/status" 2>/dev/null || true; }
ours() { # pid: it may belong to another process by now
  # A process has no environment if it is a zombie, and while execve() reads its new program from the disk.
  for _ in {1..1000}; do
    if grep -qz . "/proc/$1/environ" 2>/dev/null || [[ $(of_process "$1" State) != [!ZX] ]]; then break; fi
    sleep 0.01
  done
  grep -qzxF "EVREC_CLUSTER=$DIR" "/proc/$1/environ" 2>/dev/null
}
pid_of() (pid=$(cat "$DIR/$1.pid" 2>/dev/null) && ours "$pid" && echo "$pid")

launch() { # name command...: for a bounded time, in a session of its own, without the caller's descriptors
  name=$1 && shift
  rm -f "$DIR/$name.pid"
  # shellcheck disable=SC2016 # for the inner shell
  setsid env -i PATH="$PATH" HOME="$DIR" TMPDIR="$DIR" EVREC_CLUSTER="$DIR" timeout -k 5 "$(cat "$DIR/life")" \
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

start_etcd() {
  rm -rf "$DIR/etcd"
  url=http://127.0.0.1:$(free_port)
  echo "$url" >"$DIR/etcd.url"
  launch etcd "$kube_bin/etcd" --data-dir="$DIR/etcd" --unsafe-no-fsync --log-outputs=stderr \
    --listen-client-urls="$url" --advertise-client-urls="$url" --listen-peer-urls=http://127.0.0.1:0
  # The log is checked, not the port, as another etcd may have taken the port first.
  comes_up etcd grep -q 'serving client traffic' "$DIR/etcd.log"
}

start_server() { # flag...
  # shellcheck disable=SC2046 # a list
  launch kube-apiserver "$kube_bin/kube-apiserver" --etcd-servers="$(cat "$DIR/etcd.url")" --bind-address=127.0.0.1 \
    --secure-port="$(cat "$DIR/port")" --advertise-address=127.0.0.1 --endpoint-reconciler-type=none \
    --service-cluster-ip-range=10.0.0.0/24 --cert-dir="$DIR/pki" \
    --tls-cert-file="$DIR/pki/server.crt" --tls-private-key-file="$DIR/pki/server.key" \
    --client-ca-file="$DIR/client-ca.crt" --token-auth-file="$DIR/pki/tokens.csv" --authorization-mode=RBAC \
    --service-account-issuer=https://kubernetes.default.svc --service-account-key-file="$DIR/pki/server.crt" \
    --service-account-signing-key-file="$DIR/pki/server.key" --disable-admission-plugins=ServiceAccount \
    --enable-garbage-collector=false --profiling=false $(cat "$DIR/flags") "$@"
  comes_up kube-apiserver server_ready
}

server_ready() { [ "$(kube get --raw /readyz)" = ok ] && kube get --raw /api/v1/namespaces/default >/dev/null; }

kube() {
  HOME=$DIR KUBECONFIG=$DIR/kubeconfig.json timeout 10 "$kube_bin/kubectl" --context=admin "$@" 2>"$DIR/kubectl.log"
}

# The rights that the README asks for.
permit_recorder() {
  kube create clusterrole recorder --verb=create,patch --resource=events,events.events.k8s.io &&
    kube create clusterrolebinding recorder --clusterrole=recorder --user=recorder
}

certify() { # name authority subject extension...; authority '': signed by itself
  name=$1 ca=$2 subject=$3 && shift 3
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 \
    -keyout "$name.key" -out "$name.crt" -config <(printf '[req]\ndistinguished_name=dn\n[dn]\n') \
    -subj "$subject" ${ca:+-CA "$ca.crt" -CAkey "$ca.key"} "${@/#/-addext=}"
}

make_identities() {
  mkdir "$DIR/pki" && cd "$DIR/pki"
  certify server-ca '' "/CN=evrec test server CA" basicConstraints=critical,CA:TRUE keyUsage=critical,keyCertSign
  certify client-ca '' "/CN=evrec test client CA" basicConstraints=critical,CA:TRUE keyUsage=critical,keyCertSign
  certify_server
  certify client client-ca "/O=system:masters/CN=cert" extendedKeyUsage=clientAuth
  cp server-ca.crt client-ca.crt client.crt client.key "$DIR"
  new_token recorder
  new_token admin
  new_token nobody
  write_tokens
}

certify_server() {
  certify server server-ca "/CN=kube-apiserver" extendedKeyUsage=serverAuth \
    subjectAltName=IP:127.0.0.1,IP:10.0.0.1,DNS:localhost,DNS:kubernetes.default.svc
}

new_token() { openssl rand -hex 20 >"$DIR/$1.token"; }
write_tokens() {
  printf '%s,%s,%s\n' "$(<"$DIR/recorder.token")" recorder recorder "$(<"$DIR/nobody.token")" nobody nobody \
    "$(<"$DIR/admin.token")" admin 'admin,"system:masters"' >"$DIR/pki/tokens.csv"
}

context() { printf '\n    { "name": "%s", "context": { "cluster": "evrec", "user": "%s" } }' "$1" "$1"; }
write_kubeconfigs() {
  server=https://127.0.0.1:$(cat "$DIR/port")
  cat >"$DIR/kubeconfig.json" <<END
{ "apiVersion": "v1", "kind": "Config", "current-context": "recorder", "clusters": [{ "name": "evrec", "cluster": {
    "server": "$server", "certificate-authority-data": "$(base64 -w0 "$DIR/server-ca.crt")" } }],
  "users": [
    { "name": "recorder", "user": { "token": "$(cat "$DIR/recorder.token")" } },
    { "name": "admin", "user": { "token": "$(cat "$DIR/admin.token")" } },
    { "name": "cert", "user": { "client-certificate-data": "$(base64 -w0 "$DIR/client.crt")",
                                "client-key-data": "$(base64 -w0 "$DIR/client.key")" } },
    { "name": "nobody", "user": { "token": "$(cat "$DIR/nobody.token")" } }],
  "contexts": [$(context recorder), $(context admin), $(context cert), $(context nobody)] }
END
  kube config view --raw -o yaml >"$DIR/kubeconfig.yaml"
  printf '%s\n' "KUBECONFIG=$DIR/kubeconfig.yaml" "EVREC_KUBE_SERVER=$server" "EVREC_KUBE_CA=$DIR/server-ca.crt" \
    "EVREC_KUBE_TOKEN_FILE=$DIR/recorder.token" >"$DIR/env"
}

guard() { # until `trap - EXIT`, the servers end if this script ends
  trap failed EXIT
  trap 'exit 143' HUP INT TERM
}

failed() {
  trap '' HUP INT TERM
  tail -n 15 "$DIR"/*.log >&2
  (end kube-apiserver) || true
  end etcd
}

start() {
  [ -z "$(pid_of kube-apiserver)$(pid_of etcd)" ] || die "a cluster runs already in $DIR"
  rm -rf "$DIR/pki" "$DIR"/*.log
  echo "${EVREC_CLUSTER_LIFE:-1800}" >"$DIR/life"
  echo "--event-ttl=${EVENT_TTL:-1h} ${EVREC_APISERVER_FLAGS:-}" >"$DIR/flags"
  guard
  (make_identities) >"$DIR/openssl.log" 2>&1
  rm "$DIR/openssl.log"
  taken='address already in use'
  until start_etcd; do grep -q "$taken" "$DIR/etcd.log" || die "etcd did not start"; done
  until free_port >"$DIR/port" && write_kubeconfigs && start_server; do
    grep -q "$taken" "$DIR/kube-apiserver.log" || die "kube-apiserver did not become ready"
  done
  permit_recorder >/dev/null || die "the recorder did not get its rights"
  trap - EXIT
  say "ready after $SECONDS s: $server (export KUBECONFIG=$DIR/kubeconfig.yaml)"
}

restart() { # flag...
  pid_of etcd >/dev/null || die "etcd does not run in $DIR"
  end kube-apiserver
  guard
  start_server "$@" || die "kube-apiserver did not become ready again"
  trap - EXIT
}

signal() { # name signal states: sends the signal, and waits for one of these process states
  pid=$(pid_of "$1") || die "$1 does not run in $DIR"
  kill "-$2" "$pid"
  until [[ $(of_process "$pid" State) == ["$3"] ]]; do sleep 0.02; done
}

kill_server() {
  pid=$(pid_of kube-apiserver) || die "kube-apiserver does not run in $DIR"
  kill -KILL "$pid"
  while ours "$pid"; do sleep 0.02; done
}

status() {
  { pid_of etcd >/dev/null && pid=$(pid_of kube-apiserver); } || { echo stopped && exit 3; }
  [ "$(of_process "$pid" State)" != T ] || { echo frozen && exit 2; }
  echo running
}

[ $# = 2 ] || { [ $# -gt 2 ] && [ "$1" = restart ]; } || usage
DIR=$(realpath -m "$2")
[[ $DIR =~ ^[A-Za-z0-9_./+-]+$ ]] || die "DIR may hold letters, digits and _ . / + - only: $DIR"
umask 077
if [ "$1" = start ]; then
  for name in etcd kube-apiserver kubectl; do
    [ -x "$kube_bin/$name" ] || die "$kube_bin/$name is missing; ${0%/*}/build.sh builds it"
  done
  mkdir -p "$DIR"
  [ -f "$DIR/life" ] || [ -z "$(ls -A "$DIR")" ] || die "$DIR holds something else"
fi
[ "$1" = status ] || [ -f "$DIR/life" ] || { [ "$1" = stop ] && exit 0; } || [ "$1" = start ] || die "no cluster in $2"
[ "$1" = status ] || { exec 9>"$DIR/lock" && flock -w 150 9 && SECONDS=0; } || die "$DIR is in use"

case $1 in
  start | status) "$1" ;;
  restart) restart "${@:3}" ;;
  stop) end kube-apiserver && end etcd && rm -rf "$DIR/etcd" ;;
  freeze) signal kube-apiserver STOP T ;;
  thaw) signal kube-apiserver CONT RSDI ;;
  freeze-etcd) signal etcd STOP T ;;
  thaw-etcd) signal etcd CONT RSDI ;;
  kill) kill_server ;;
  new-token) new_token recorder && write_tokens && write_kubeconfigs ;;
  new-certificate) cd "$DIR/pki" && certify_server 2>"$DIR/openssl.log" ;;
  *) usage ;;
esac
