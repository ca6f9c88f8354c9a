#!/bin/bash
# Checks the form of all sources, and that compilers and checkers have no warning.
#
# usage: lint.sh    (from the top of the repository)
set -eu

# shellcheck source-path=SCRIPTDIR
. "${0%/*}/tally.sh"

files() { # [PATTERN...]: the files of the repository, also new ones, without the inputs of fuzzing
	git ls-files -co --exclude-standard -- "$@" | grep -v '^spec/fuzz/corpus/' |
		while read -r file; do [ ! -f "$file" ] || echo "$file"; done
}

none() { # fails, and shows the lines, if any line comes in
	! grep .
}

formatted() {
	files '*.c' '*.h' | xargs -r clang-format --dry-run -Werror
}

compiles() { # NAME=VALUE...: the Makefile makes warnings errors
	"${MAKE:-make}" --no-print-directory -j "$(nproc)" "$@" all units examples benches runners
}

tidy() {
	local flags
	flags="-std=gnu11 -Icsrc $(pkg-config --cflags lua5.4 libcurl jansson sqlite3 zlib)"
	# shellcheck disable=SC2016 # for the inner shell
	files csrc | grep '\.c$' |
		xargs -n 1 -P "$(nproc)" sh -c 'clang-tidy --quiet "$2" -- $1 2>/dev/null' tidy "$flags"
}

# vet skips the modules that only build Kubernetes and etcd, as it would check those for minutes. With the flags of
# programs.sh what it compiles of the collector is compiled once.
go_sources() {
	local go module
	go=$(spec/support/go.sh)
	files '*.go' | xargs "${go%/*}/gofmt" -l | none || return
	for module in $(files '*go.mod' ':!spec/support/kube'); do
		(cd "${module%/*}" && CGO_ENABLED=0 GOFLAGS='-buildvcs=false -trimpath' "$go" vet ./...) || return
	done
}

shell_scripts() {
	files ":!*.lua" | xargs grep -lE '^#!.*sh$|^# shellcheck shell=' | xargs shellcheck
}

short() { # about 400 lines; 1160 for the two files that list the whole interface, in C and in Lua
	files csrc lua 'spec/*.c' 'spec/*.h' 'spec/*.cpp' 'spec/*.lua' 'spec/*.sh' 'spec/*.go' 'spec/*.py' |
		xargs -r wc -l | awk '$2 ~ "^(csrc/evrec.h|lua/evrec/meta.lua)$" { $1 -= 720 }
		$1 > 440 && $2 != "total"' | none
}

whitespace() {
	files | xargs grep -nIE '[[:space:]]+$' | none
}

# No file may name a path of one machine, or the host that somebody gets packages from.
portable() {
	local root='(^|[^A-Za-z0-9_.}-])/'
	files | xargs grep -nIE "$root(work|home|Users|workspace|tmp|var/tmp|root)/[A-Za-z]|\
https?://[a-z0-9.-]*(mirror|registry|artifactory|nexus|goproxy)[a-z0-9.-]*" |
		grep -v '^spec/support/lint\.sh:' | none
}

top_level() {
	files | grep -v '^\.' | cut -d / -f 1 | sort -u |
		grep -vxE 'csrc|lua|rockspec|spec|examples|Makefile|README\.md|LICENSE|CHANGELOG\.md' | none
}

tally_begin build/log
tally_check "clang-format" formatted
# gcc builds what the tests run. clang's warnings do not depend on its optimizer.
tally_check "gcc" compiles CC=gcc
tally_check "clang" compiles CC=clang BUILD=build/clang OPTIMIZE=
tally_check "clang-tidy" tidy
tally_check "luacheck" luacheck -q --no-color lua spec examples rockspec
tally_check "gofmt, go vet" go_sources
tally_check "shellcheck" shell_scripts
tally_check "files of about 400 lines" short
tally_check "no trailing white space" whitespace
tally_check "nothing of one machine" portable
tally_check "the top level" top_level
tally_end
