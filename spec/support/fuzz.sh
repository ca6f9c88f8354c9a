#!/bin/bash
# Fuzzes each target of spec/fuzz with clang's libFuzzer, AddressSanitizer and UBSan: first runs its corpus, then
# FUZZ_SECONDS (20) of new inputs. Inputs that reach new code are kept below build/fuzzing, and so is an input that
# fails; `build/fuzzing/fuzz/TARGET INPUT` runs it again.
#
# usage: fuzz.sh run [TARGET...]
#        fuzz.sh corpus [TARGET...]    adds the kept inputs that reach new code to the corpus
set -eu

# shellcheck source-path=SCRIPTDIR
. "${0%/*}/tally.sh"

what=$1
shift
build=build/fuzzing
seconds=${FUZZ_SECONDS:-20}
seed=${EVREC_SEED:-$((RANDOM * 32768 + RANDOM + 1))}
export ASAN_OPTIONS="detect_leaks=1:allow_addr2line=1:${ASAN_OPTIONS-}"
export UBSAN_OPTIONS="print_stacktrace=1:${UBSAN_OPTIONS-}"

hashed=$(printf '[0-9a-f]%.0s' {1..12})

targets=("$@")
if [ ${#targets[@]} = 0 ]; then
	mapfile -t targets < <(basename -a -s _fuzz.c spec/fuzz/*_fuzz.c)
fi

compile() {
	"${MAKE:-make}" --no-print-directory -j "$(nproc)" CC=clang OPTIMIZE=-O1 FUZZ_MAIN= LDFLAGS=-fsanitize=fuzzer \
		CFLAGS="-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer" \
		BUILD="$build" "${targets[@]/#/$build/fuzz/}"
}

replay() { # TARGET: libFuzzer runs each file that it is given once
	"$build/fuzz/$1" "spec/fuzz/corpus/$1"/*
}

fuzz() { # TARGET
	local options=()
	[ ! -f "spec/fuzz/$1.dict" ] || options+=("-dict=spec/fuzz/$1.dict")
	[ ! -f "spec/fuzz/$1.lua" ] || options+=(-detect_leaks=0) # see fuzz_lua.h
	mkdir -p "$build/corpus/$1"
	timeout -k 10 $((seconds + 60)) "$build/fuzz/$1" -seed="$seed" -max_total_time="$seconds" -timeout=10 \
		-artifact_prefix="$build/found-$1-" -print_final_stats=1 "${options[@]}" "$build/corpus/$1" "spec/fuzz/corpus/$1"
}

# Files with a name of somebody's choice stay in the corpus. Of the files named by a hash, those stay that reach code
# which no other file reaches.
take() { # TARGET
	local corpus=spec/fuzz/corpus/$1 merged=$build/merged/$1 file
	rm -rf "$merged"
	mkdir -p "$merged" "$build/corpus/$1" "$corpus"
	find "$corpus" -type f ! -name "$hashed" -exec cp -t "$merged" {} +
	"$build/fuzz/$1" -merge=1 -use_counters=0 "$merged" "$corpus" "$build/corpus/$1" || return
	find "$corpus" -type f -name "$hashed" -delete
	for file in "$merged"/*; do
		[ -f "$corpus/${file##*/}" ] || cp "$file" "$corpus/$(basename "$file" | cut -c 1-12)"
	done
}

compile
tally_begin "$build/log"
case $what in
run)
	echo "EVREC_SEED=$seed FUZZ_SECONDS=$seconds"
	for target in "${targets[@]}"; do
		tally_check "$target: the corpus" replay "$target"
		tally_check "$target: $seconds s of new inputs" fuzz "$target"
	done
	;;
corpus)
	for target in "${targets[@]}"; do
		tally_check "$target: the corpus" take "$target"
	done
	;;
*)
	echo "usage: fuzz.sh run|corpus [TARGET...]" >&2
	exit 64
	;;
esac
tally_end
