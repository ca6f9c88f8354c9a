# shellcheck shell=bash disable=SC2034 # the variable is for the script that reads this
# Names the folder in which build.sh puts the collector: to be read (`.`) by a script. Sets otel_bin.
otel_here=${BASH_SOURCE[0]%/*}
# shellcheck source=spec/support/programs.sh
. "$otel_here/../programs.sh"
otel_bin=$programs_cache/otel-$(programs_sum "$otel_here/collector")
