#!/bin/bash
# Builds an OpenTelemetry collector for the tests (see collector.sh), once, from the Go module beside this file, which
# pins each version and checksum. place.sh names the folder for it. The last line says how long it took.
#
# usage: build.sh
set -eu

# shellcheck source-path=SCRIPTDIR
. "${0%/*}/place.sh"
programs_build "$otel_bin" "-s -w" "$(realpath "$otel_here")/collector"
