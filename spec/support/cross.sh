#!/bin/bash
# Builds core, unit tests and Lua 5.4's module for another machine with Debian's cross compiler, and tests them under
# qemu-user. s390x is big-endian.
#
# usage: cross.sh arm64|s390x [FOLDER...]    (of spec/unit: runs the tests of these folders alone)
set -eu

here=${0%/*}
# shellcheck source-path=SCRIPTDIR
. "$here/tally.sh"
build=build/$1
case $1 in
arm64) machine=aarch64 ;;
s390x) machine=s390x ;;
*)
	echo "usage: cross.sh arm64|s390x [FOLDER...]" >&2
	exit 64
	;;
esac
root=$("$here/sysroot.sh" "$1")
lib=$root/usr/lib/$machine-linux-gnu

shift
programs=()
for folder in "$@"; do
	for source in "spec/unit/$folder"/*_test.c; do
		program=${source#spec/unit/}
		programs+=("${program%.c}")
	done
done
wanted=(all units examples)
if [ $# != 0 ]; then
	wanted=("${programs[@]/#/$build/unit/}")
fi
PKG_CONFIG_LIBDIR=$lib/pkgconfig:$root/usr/share/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root \
	"${MAKE:-make}" --no-print-directory CC="$machine-linux-gnu-gcc --sysroot=$root" BUILD="$build" LUAS=5.4 \
	UNIT_CXX_SRC= "${wanted[@]}"

# Every lua5.4 that a spec starts is the other machine's, too.
mkdir -p "$build/bin"
# shellcheck disable=SC2016 # for the script
printf '#!/bin/sh\nexec qemu-%s %s "$@"\n' "$machine" "$root/usr/bin/lua5.4" >"$build/bin/lua5.4"
chmod +x "$build/bin/lua5.4"
PATH=$PWD/$build/bin:$PATH

cat >"$build/skip" <<'END'
unit recorder/cxx_test: there is a cross compiler for C alone
unit exec/plugin_test: qemu-user emulates vfork by fork, so posix_spawn does not tell that a command cannot be run
unit exec/process_test: likewise
unit sender/on_signal_test: test_process_1_exits_with_the_signals_status hangs under qemu-user, for a cause that is not known
5.4 signal_spec: hangs under qemu-user, likewise
unit http/http2_test: libcurl must read one record before the next one comes, and an emulated one is too slow
unit sender/sender_exit_test: qemu-user cannot start a thread in a forked child
unit sink/kubernetes_fork_test: qemu-user cannot start a thread in a forked child
5.4 finalizer_spec: takes minutes, as it collects all garbage at each allocation
5.4 curl_without_openssl_spec: this machine's list of libraries names none of the other machine
5.4 full_pipe_spec: the spec forbids threads, and qemu-user needs one of its own
every public function, with memory running out: it reads sources, and nm of this machine reads no other machine's library
END
export QEMU_LD_PREFIX="$root" EVREC_RUN="qemu-$machine" TALLY_SKIP="$build/skip"
# An emulated program takes twenty times as long. A hundredth of the random lives that `make test` tries.
export TEST_TIMEOUT="${TEST_TIMEOUT:-300}" EVREC_SEEDS="${EVREC_SEEDS:-100}" TALLY_JOBS="${TALLY_JOBS:-$(nproc)}"
if [ $# = 0 ]; then
	exec "$here/test.sh" "$build" 5.4
fi
tally_begin "$build/log"
for program in "${programs[@]}"; do
	tally_run "unit $program" env CMOCKA_MESSAGE_OUTPUT=TAP "$EVREC_RUN" "$build/unit/$program"
done
tally_end
