#!/bin/bash
# Changes real hosts, nginx and HAProxy, while requests come, and checks that no event is lost or written twice. As root,
# as both give up rights of root.
#
# usage: hosts.sh BUILD    (from the top of the repository)
#
# HOSTS_SCALE (1)  a factor for the 10 s that each change is tried for. All may take 40 minutes: a change for which no
#                  time is left fails
# HOSTS            tries only the changes whose name this extended regular expression finds; "the other tests" are
#                  those of hosts_spec.lua
#
# The table of the results is BUILD/hosts/hosts.md; the logs are beside it.
set -eu

# shellcheck source-path=SCRIPTDIR
. "${0%/*}/stage.sh"
# shellcheck source-path=SCRIPTDIR
. spec/support/tally.sh
build=$1
scale=${HOSTS_SCALE:-1}
results=$build/hosts/results.json

tally_begin "$build/hosts"
rm -f "$results" 8>&-
stage_begin "$build"
while read -r name <&3; do
	left=$((2400 - SECONDS))
	tally_check "$name" timeout -k 5 "$((left < 1 ? 1 : left < 120 ? left : 120))" \
		luajit spec/hosts/perform.lua "$name" "$scale" "$results" 8>&-
done 3< <(luajit spec/hosts/perform.lua list | grep -E -- "${HOSTS-}" || true)
if [[ "the other tests" =~ ${HOSTS-} ]]; then
	tally_run "hosts_spec" luajit spec/support/run_specs.lua -o TAP spec/hosts/hosts_spec.lua 8>&-
fi
[ ! -f "$results" ] || luajit spec/hosts/report.lua "$results" >"$build/hosts/hosts.md"
tally_end
