#!/bin/bash
# Measures what a recorded event costs a request in nginx, and fails if that is more processor time than the goal. People
# judge the latency. As root, on a machine that does nothing else.
#
# usage: cost.sh BUILD    (from the top of the repository)
#
# COST_PAIRS (31)   pairs of runs, without and with an event
# COST_SECONDS (1)  the seconds of a run
set -eu

# shellcheck source-path=SCRIPTDIR
. "${0%/*}/stage.sh"
stage_begin "$1"
uptime
met=0
luajit spec/hosts/cost.lua "${COST_PAIRS:-31}" "${COST_SECONDS:-1}" 8>&- || met=$?
uptime
exit "$met"
