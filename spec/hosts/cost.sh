#!/bin/bash
# Measures what a recorded event costs a request in nginx. People judge the figures. As root.
#
# usage: cost.sh BUILD    (from the top of the repository)
#
# COST_PAIRS (9)    pairs of runs, without and with an event
# COST_SECONDS (3)  the seconds of a run
set -eu

# shellcheck source-path=SCRIPTDIR
. "${0%/*}/stage.sh"
stage_begin "$1"
uptime
luajit spec/hosts/cost.lua "${COST_PAIRS:-9}" "${COST_SECONDS:-3}" 8>&-
uptime
