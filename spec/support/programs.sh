# shellcheck shell=bash
# Builds programs from Go modules, each once, into the cache folder: to be read (`.`) by a script of bash.
#
#   programs_cache                $EVREC_CACHE, by default evrec/ below $XDG_CACHE_HOME or ~/.cache; without a home
#                                 build/cache
#   programs_sum FOLDER...        prints a checksum of the sources and pins of modules
#   programs_build BIN FLAGS FOLDER...
#                                 builds the program of each module, with these flags for the linker, unless it is in
#                                 the folder BIN. Its name is that of its module's folder. Sets traps of the script
#
# BIN is $programs_cache/NAME-CHECKSUM: a changed pin makes other programs.
[ -n "${EVREC_CACHE-}${XDG_CACHE_HOME-}${HOME-}" ] || export EVREC_CACHE="$PWD/build/cache"
programs_cache=$(realpath -m "${EVREC_CACHE:-${XDG_CACHE_HOME:-${HOME-}/.cache}/evrec}")
programs_here=$(realpath "${BASH_SOURCE[0]%/*}")
programs_limit=2700 # seconds for each program
programs_took=''

programs_sum() {
	local folder
	for folder in "$@"; do
		cat "$folder"/go.mod "$folder"/go.sum "$folder"/*.go
	done | sha256sum | cut -c 1-12
}

programs_say() { printf '%s\n' "${programs_bin##*/}: $*"; }

programs_missing() { # FOLDER...: prints the folders whose programs do not exist
	local folder
	for folder in "$@"; do
		[ -x "$programs_bin/${folder##*/}" ] || printf '%s\n' "$folder"
	done
}

programs_finish() {
	local code=$?
	trap '' HUP INT TERM
	if [ -n "$programs_step" ]; then
		kill "$programs_step" 2>/dev/null || true # timeout passes the signal on to the programs that it has started
		wait "$programs_step" || true
	fi
	rm -rf "$programs_work"
	if [ "$code" != 0 ]; then
		{ programs_say "failed; the end of $programs_log:" && tail -n 30 "$programs_log"; } >&2
	fi
	exit "$code"
}

# Closes the lock's descriptor (9>&-), so that a step that outlives a killed build does not keep others from building.
programs_build_one() { # GO FLAGS FOLDER
	local begun=$SECONDS name=${3##*/}
	(cd "$3" && exec timeout -k 10 "$programs_limit" "$1" build -trimpath -buildvcs=false -ldflags "$2" \
		-o "$programs_work/$name" .) </dev/null >>"$programs_log" 2>&1 9>&- &
	programs_step=$!
	wait "$programs_step"
	programs_step=
	mv "$programs_work/$name" "$programs_bin/$name"
	programs_took="${programs_took:+$programs_took, }$name $((SECONDS - begun)) s"
}

programs_build() {
	programs_bin=$1
	local flags=$2 go folder base=${1%-*}
	shift 2
	if [ -n "$(programs_missing "$@")" ]; then
		mkdir -p "$programs_bin"
		exec 9>"$base.lock"
		flock -n 9 || { programs_say "another build is under way; waiting for it" && flock 9; }
		go=$("$programs_here/go.sh" 9>&-)
		programs_log=$base.log programs_step=
		: >"$programs_log"
		rm -rf "$base".work.* # left by a build that was killed
		programs_work=$(mktemp -d "$base.work.XXXXXX")
		trap programs_finish EXIT
		trap 'exit 129' HUP
		trap 'exit 130' INT
		trap 'exit 143' TERM
		unset GOOS GOARCH GOEXPERIMENT GOROOT
		export HOME="${HOME:-$programs_cache}" GOFLAGS='' GOWORK=off GOTOOLCHAIN=local CGO_ENABLED=0
		export GOTMPDIR="$programs_work"
		for folder in $(programs_missing "$@"); do # asked again, as another build may have made some meanwhile
			programs_say "building ${folder##*/} (from nothing minutes; log: $programs_log)"
			programs_build_one "$go" "$flags" "$folder"
		done
	fi
	programs_say "$(
		[ -n "$programs_took" ] && echo "built in $((SECONDS / 60)) min $((SECONDS % 60)) s ($programs_took)" ||
			echo "built already"
	), in $programs_bin"
}
