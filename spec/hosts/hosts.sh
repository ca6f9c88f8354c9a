#!/bin/bash
# Changes real hosts, nginx and HAProxy, while requests come, and checks that no event is lost or written twice.
#
# usage: hosts.sh BUILD    (from the top of the repository)
#
# HOSTS_SCALE (1)  a factor for the 10 s that each change is tried for
# HOSTS            tries only the changes whose name this extended regular expression finds
#
# The table of the results is BUILD/hosts/hosts.md; the logs are beside it.
set -eu

# shellcheck source-path=SCRIPTDIR
. spec/drill/stage.sh
# shellcheck source-path=SCRIPTDIR
. spec/support/tally.sh
build=$1
scale=${HOSTS_SCALE:-1}
results=$build/hosts/results.json

tally_begin "$build/hosts"
rm -f "$results"
stage_begin "$build" 7200
export LUA_PATH="./spec/hosts/?.lua;$LUA_PATH"
while read -r name <&3; do
	tally_check "$name" timeout -k 5 120 luajit spec/hosts/perform.lua "$name" "$scale" "$build" "$results"
done 3< <(luajit spec/hosts/perform.lua list | cut -f 1 | grep -E -- "${HOSTS-}")
tally_end
