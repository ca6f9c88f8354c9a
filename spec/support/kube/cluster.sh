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
# EVREC_APISERVER_FLAGS (more flags for kube-apiserver), EVREC_CACHE (see ../programs.sh).
set -eu

# shellcheck source-path=SCRIPTDIR
. "${0%/*}/place.sh"
servers='kube-apiserver etcd' programs=$(printf '%s\n' "$kube_bin"/{etcd,kube-apiserver,kubectl})
# shellcheck source=spec/support/servers.sh
. "${0%/*}/../servers.sh"

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

make_identities() {
  make_certificates "/CN=kube-apiserver" "/O=system:masters/CN=cert"
  new_token recorder
  new_token admin
  new_token nobody
  write_tokens
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

start() {
  begin_folder "${EVREC_CLUSTER_LIFE:-1800}"
  echo "--event-ttl=${EVENT_TTL:-1h} ${EVREC_APISERVER_FLAGS:-}" >"$DIR/flags"
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

status() {
  { pid_of etcd >/dev/null && pid=$(pid_of kube-apiserver); } || { echo stopped && exit 3; }
  [ "$(of_process "$pid" State)" != T ] || { echo frozen && exit 2; }
  echo running
}

[ $# = 2 ] || { [ $# -gt 2 ] && [ "$1" = restart ]; } || usage
open_folder "$@"
case $1 in
  start | status) "$1" ;;
  restart) restart "${@:3}" ;;
  stop) end_all && rm -rf "$DIR/etcd" ;;
  freeze | thaw) "$1" kube-apiserver ;;
  freeze-etcd | thaw-etcd) "${1%-etcd}" etcd ;;
  kill) kill_server kube-apiserver ;;
  new-token) new_token recorder && write_tokens && write_kubeconfigs ;;
  new-certificate) cd "$DIR/pki" && certify_server /CN=kube-apiserver 2>"$DIR/openssl.log" ;;
  *) usage ;;
esac
