#!/bin/bash
# A real OpenTelemetry collector for tests (see build.sh), on free loopback ports; and behind it another one, its backend.
#
# usage: collector.sh COMMAND DIR [SERVER]    (SERVER: collector, by default, or backend)
# start    returns when both are ready. DIR, which must be new, empty or of an earlier collector, then has
#            env       EVREC_OTLP_PLAIN and EVREC_OTLP_TLS, endpoints of the collector: HTTP/1.1; and HTTP/2 by ALPN, for
#                      clients with the certificate client.crt, client.key that trust server-ca.crt
#                      EVREC_OTLP_SMALL and EVREC_OTLP_SMALL_TLS, which take 16 KiB at most: 400
#                      EVREC_OTLP_RELAY, another one, whose records the backend must take before the collector answers:
#                      503 if the backend is away
#            records   what they received: the lines of collector/lines.go, with the header x-tenant
#            collector.pid, collector.log, backend.pid, backend.log
#          The log of the collector tells of each HTTP/2 connection.
# stop     ends both; may be repeated
# status   says running (exit code 0), frozen (2) or stopped (3)
# freeze   holds the server (SIGSTOP); thaw lets it go on
# kill     ends the server at once (SIGKILL)
# restart  ends the server, if it runs, and starts it again at the same ports
# Environment of start: EVREC_COLLECTOR_LIFE (1800: the seconds after which each ends by itself),
# EVREC_COLLECTOR_REQUESTS_ONLY (if not empty, `records` has no records, only requests), EVREC_CACHE (see ../programs.sh).
set -eu

# shellcheck source-path=SCRIPTDIR
. "${0%/*}/place.sh"
servers='collector backend' programs=$otel_bin/collector
# shellcheck source=spec/support/servers.sh
. "${0%/*}/../servers.sh"

write_configuration() { # name receivers exporters pipelines
  cat >"$DIR/$1.yaml" <<END
receivers: {$2}
exporters: { lines: { path: "$DIR/records", headers: [x-tenant], requests_only: $requests_only }$3 }
service: { telemetry: { metrics: { level: none } }, pipelines: {$4} }
END
}

receiver() { # name port [setting]
  printf ' otlp/%s: { protocols: { http: { endpoint: "127.0.0.1:%s", include_metadata: true%s } } },' "$1" "$2" "${3-}"
}

configure() {
  local plain tls small small_tls relay backend certificates limit=', max_request_body_size: 16384'
  plain=$(free_port) tls=$(free_port) small=$(free_port) small_tls=$(free_port) relay=$(free_port) backend=$(free_port)
  certificates=", tls: {
    cert_file: \"$DIR/pki/server.crt\", key_file: \"$DIR/pki/server.key\", client_ca_file: \"$DIR/client-ca.crt\" }"
  write_configuration collector "$(receiver plain "$plain")$(receiver relay "$relay")$(
    receiver small "$small" "$limit"
  )$(receiver tls "$tls" "$certificates")$(receiver small_tls "$small_tls" "$limit$certificates")" \
    ", otlp_http: { endpoint: \"http://127.0.0.1:$backend\", retry_on_failure: { enabled: false },
    sending_queue: { enabled: false } }" \
    " logs/direct: { receivers: [otlp/plain, otlp/tls, otlp/small, otlp/small_tls], exporters: [lines] },
    logs/relay: { receivers: [otlp/relay], exporters: [otlp_http] } "
  write_configuration backend "$(receiver plain "$backend")" '' ' logs: { receivers: [otlp/plain], exporters: [lines] } '
  printf '%s\n' "EVREC_OTLP_PLAIN=http://127.0.0.1:$plain/v1/logs" "EVREC_OTLP_TLS=https://127.0.0.1:$tls/v1/logs" \
    "EVREC_OTLP_SMALL=http://127.0.0.1:$small/v1/logs" "EVREC_OTLP_SMALL_TLS=https://127.0.0.1:$small_tls/v1/logs" \
    "EVREC_OTLP_RELAY=http://127.0.0.1:$relay/v1/logs" >"$DIR/env"
}

start_server() { # name
  launch "$1" env GODEBUG=http2debug=1 "$otel_bin/collector" "$DIR/$1.yaml"
  comes_up "$1" grep -q 'Everything is ready' "$DIR/$1.log"
}

start() {
  begin_folder "${EVREC_COLLECTOR_LIFE:-1800}"
  requests_only=${EVREC_COLLECTOR_REQUESTS_ONLY:+true}
  requests_only=${requests_only:-false}
  : >"$DIR/records"
  (make_certificates "/CN=collector" "/CN=evrec") >"$DIR/openssl.log" 2>&1
  rm "$DIR/openssl.log"
  until configure && start_server backend && start_server collector; do
    grep -q 'address already in use' "$DIR"/*.log || die "no collector started"
    end_all
  done
  trap - EXIT
  say "ready after $SECONDS s: $(sed -n 's/^EVREC_OTLP_PLAIN=//p' "$DIR/env")"
}

restart() { # name
  end "$1"
  guard
  start_server "$1" || die "the $1 did not become ready again"
  trap - EXIT
}

status() { # name
  pid=$(pid_of "$1") || { echo stopped && exit 3; }
  [ "$(of_process "$pid" State)" != T ] || { echo frozen && exit 2; }
  echo running
}

[ $# = 2 ] || { [ $# = 3 ] && [[ $3 == collector || $3 == backend ]]; } || usage
open_folder "$@"
server=${3:-collector}

case $1 in
  start) start ;;
  stop) end_all ;;
  status | freeze | thaw | restart) "$1" "$server" ;;
  kill) kill_server "$server" ;;
  *) usage ;;
esac
