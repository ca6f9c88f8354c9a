#!/bin/sh
# Builds core, unit tests and Lua 5.4's module with a sanitizer, and tests them; or builds LuaJIT's module, and runs the
# fire drills with it. asan is AddressSanitizer with LeakSanitizer and UndefinedBehaviorSanitizer.
# EVREC_DEBUG makes the core trap on an illegal step between the phases of an object (csrc/base/phase.h).
#
# usage: sanitize.sh asan|tsan [drill]
set -eu

here=${0%/*}
build=build/$1
first=
run=
# A tenth of the random lives that `make test` tries: under a sanitizer each takes longer.
seeds=1000
case $1 in
asan)
	flags='-fsanitize=address,undefined -fno-sanitize-recover=undefined'
	first="env LD_PRELOAD=$(gcc -print-file-name=libasan.so)"
	export ASAN_OPTIONS="detect_leaks=1:detect_stack_use_after_return=1:${ASAN_OPTIONS-}"
	export UBSAN_OPTIONS="print_stacktrace=1:${UBSAN_OPTIONS-}"
	;;
tsan)
	flags=-fsanitize=thread
	seeds=500 # most random lives have one thread, in which ThreadSanitizer finds nothing
	# LD_PRELOAD in the environment would crash the shells that specs start.
	first="ld.so --preload $(gcc -print-file-name=libtsan.so)"
	# Some tests fork while threads run, and the child goes on.
	export TSAN_OPTIONS="die_after_fork=0:${TSAN_OPTIONS-}"
	# Without randomised addresses (-R): gcc 12's TSan does not know the layout of kernels that randomise more bits.
	run="setarch $(uname -m) -R"
	;;
*)
	echo "usage: sanitize.sh asan|tsan [drill]" >&2
	exit 64
	;;
esac

# gcc 12's LeakSanitizer may take a wrong address for the thread-local variables of a loaded module, and crash.
tls=-ftls-model=initial-exec

make_targets() { # lua target...
	lua=$1
	shift
	"${MAKE:-make}" --no-print-directory CC=gcc OPTIMIZE=-O1 CFLAGS="$flags $tls -fno-omit-frame-pointer -DEVREC_DEBUG" \
		BUILD="$build" LUAS="$lua" "$@"
}

# Wraps an interpreter that was built without the sanitizer, so that it loads the sanitizer's library before evrec's
# module.
load_first() { # interpreter
	mkdir -p "$build/bin"
	# shellcheck disable=SC2016 # for the script
	printf '#!/bin/sh\nexec %s %s "$@"\n' "$first" "$(command -v "$1")" >"$build/bin/$1"
	chmod +x "$build/bin/$1"
	PATH=$PWD/$build/bin:$PATH
}

if [ "${2-}" = drill ]; then
	make_targets luajit "$build/luajit/evrec/core.so"
	load_first luajit
	export EVREC_SANITIZER="$1"
	# shellcheck disable=SC2086 # words
	exec $run spec/drill/drill.sh "$build"
fi

make_targets 5.4 all units examples
load_first lua5.4
export EVREC_SEEDS="${EVREC_SEEDS:-$seeds}" TEST_TIMEOUT="${TEST_TIMEOUT:-600}"
if [ "$1" = tsan ]; then
	export TALLY_SKIP="$build/without-threads"
	for program in "$build"/unit/*/*_test; do
		symbols=$(nm -u "$program")
		case $symbols in
		*pthread_create*) ;;
		*) echo "unit ${program#"$build"/unit/}: it starts no thread, so it has no data race" ;;
		esac
	done >"$TALLY_SKIP"
	echo "5.4 cli_occurrences_spec: it takes a minute, and a replay has no thread" >>"$TALLY_SKIP"
fi
# shellcheck disable=SC2086 # words
exec $run "$here/test.sh" "$build" 5.4
