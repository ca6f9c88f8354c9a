#!/bin/bash
# Builds kube-apiserver, once, from Debian's own source package, for the end-to-end tests (see cluster.sh).
# Debian's binary packages hold the client alone. The result: $EVREC_CACHE/kube-apiserver
# (by default in evrec/ below $XDG_CACHE_HOME or ~/.cache). While it builds, it needs 3 GB of disk there.
set -eu

CACHE=${EVREC_CACHE:-${XDG_CACHE_HOME:-${HOME:?is not set; set EVREC_CACHE}/.cache}/evrec}
WANT=1.20.2 # Kubernetes' version, as in Debian 12
GO=/usr/lib/go-1.19/bin/go

# What is needed, as command:package. A command that is there already needs no package.
RUN_NEEDS="etcd:etcd-server kubectl:kubernetes-client openssl:openssl"
BUILD_NEEDS="$GO:golang-1.19-go dpkg-source:dpkg-dev"

say() { printf 'kube/build: %s\n' "$*"; }
die() { say "$*" >&2; exit 1; }
ready() { "$CACHE/kube-apiserver" --version 2>/dev/null; }

# shellcheck disable=SC2086 # the needs are lists
look() { # sets found to the version that is there, and packages to those that are missing
  needs=$RUN_NEEDS
  found=$(ready) || needs="$needs $BUILD_NEEDS"
  packages=
  for need in $needs; do
    command -v "${need%%:*}" >/dev/null || packages="$packages ${need#*:}"
  done
}

exit_if_there() {
  if [ -n "$found" ] && [ -z "$packages" ]; then
    say "already there: $CACHE/kube-apiserver ($found)"
    exit 0
  fi
}

# shellcheck disable=SC2086 # $packages is a list
install_packages() {
  [ -n "$packages" ] || return 0
  say "missing packages:$packages"
  sudo=
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || die "not root and no sudo here; install them yourself: apt-get install$packages"
    sudo=sudo
  fi
  say "installing them"
  $sudo apt-get update >>"$LOG" 2>&1 9>&- || say "apt-get update failed in part; going on"
  $sudo env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends $packages >>"$LOG" 2>&1 9>&-
  # Debian's package starts an etcd of its own; the tests run theirs on other ports.
  case "$packages " in
    *" etcd-server "*) [ ! -d /run/systemd/system ] || $sudo systemctl disable --now etcd >>"$LOG" 2>&1 || true ;;
  esac
  packages=
}

# Each step is a process group, so that an interrupted build leaves nothing running.
step=
run() {
  set -m
  "$@" </dev/null >>"$LOG" 2>&1 9>&- &
  step=$!
  set +m
  wait "$step" || { rc=$? && step= && return "$rc"; }
  step=
}

finish() {
  rc=$?
  trap '' HUP INT TERM
  if [ -n "$step" ]; then
    kill -TERM -- "-$step" 2>/dev/null || true
    wait "$step" 2>/dev/null || true
    kill -KILL -- "-$step" 2>/dev/null || true
  fi
  [ -z "$WORK" ] || rm -rf "$WORK" 2>/dev/null || { sleep 1 && rm -rf "$WORK"; } || true
  if [ "$rc" != 0 ] && [ -s "$LOG" ]; then
    { say "failed; the end of $LOG:"; tail -n 30 "$LOG"; } >&2
  fi
  exit "$rc"
}

# The machine's own sources, as sources of source packages; nothing of the machine's apt is changed.
derive_sources() {
  mkdir -p apt/parts apt/lists/partial apt/cache/archives/partial
  : >apt/sources.list
  list='' parts=''
  eval "$(apt-config shell list Dir::Etc::sourcelist/f parts Dir::Etc::sourceparts/d)"
  for file in "$list" "$parts"/*.list; do
    [ ! -f "$file" ] || sed -n '/cdrom:/d; s/^[[:space:]]*deb\([[:space:]]\)/deb-src\1/p' "$file" >>apt/sources.list
  done
  for file in "$parts"/*.sources; do
    [ ! -f "$file" ] || sed 's/^Types:.*/Types: deb-src/I' "$file" >"apt/parts/${file##*/}"
  done
  APT=(-o "Dir::Etc::sourcelist=$WORK/apt/sources.list" -o "Dir::Etc::sourceparts=$WORK/apt/parts"
    -o "Dir::State::lists=$WORK/apt/lists" -o "Dir::Cache=$WORK/apt/cache")
}

fetch_source() {
  # A third party's repository without sources must not be in the way: what counts is whether the package is found.
  run apt-get "${APT[@]}" update || say "some package sources could not be read; going on"
  version=$(apt-cache "${APT[@]}" showsrc --only-source kubernetes 2>>"$LOG" |
    awk -v want="$WANT" '$1 == "Version:" && index($2, want "-") { print $2; exit }')
  [ -n "$version" ] || die "no source package kubernetes $WANT in this machine's package sources (is it Debian 12?)"
  say "fetching kubernetes $version"
  run apt-get "${APT[@]}" source --download-only "kubernetes=$version"
  set -- kubernetes_*.dsc
  mkdir -p gopath/src/k8s.io
  say "unpacking it"
  run dpkg-source --no-check -x "$1" gopath/src/k8s.io/kubernetes # apt has checked it
}

# The package lacks one generated file, which kube-apiserver needs.
generate_openapi() {
  run "$GO" build -o "$WORK/openapi-gen" ./vendor/k8s.io/kube-openapi/cmd/openapi-gen
  packages=$(grep -rl --include='*.go' '+k8s:openapi-gen=' pkg staging |
    grep -v -e /code-generator/ -e /sample-apiserver/ | xargs -n1 dirname | LC_ALL=C sort -u |
    sed 's,^staging/src/,vendor/,; s,^,k8s.io/kubernetes/,' | paste -sd,)
  run "$WORK/openapi-gen" --logtostderr -i "$packages" -p k8s.io/kubernetes/pkg/generated/openapi \
    -O zz_generated.openapi -h vendor/k8s.io/code-generator/hack/boilerplate.go.txt -r "$WORK/violations"
}

build_server() {
  minor=${WANT#*.}
  flags="-s -w"
  for package in component-base/version client-go/pkg/version; do # the second is what /version answers
    variables=k8s.io/kubernetes/vendor/k8s.io/$package
    flags="$flags -X $variables.gitVersion=v$WANT"
    flags="$flags -X $variables.gitMajor=${WANT%%.*} -X $variables.gitMinor=${minor%%.*}"
  done
  run "$GO" build -trimpath -ldflags "$flags" -o "$WORK/kube-apiserver" k8s.io/kubernetes/cmd/kube-apiserver
}

look
exit_if_there

mkdir -p "$CACHE"
CACHE=$(cd "$CACHE" && pwd -P) # Go compares paths below GOPATH by name
exec 9>"$CACHE/build.lock"
flock -n 9 || { say "another build is under way; waiting for it"; flock 9; }

LOG=$CACHE/build.log
WORK=
: >"$LOG"
trap finish EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

look # again: the other build may have made it
install_packages
exit_if_there

rm -rf "$CACHE"/build.work.* 2>/dev/null || true # of a build that was killed; a step of it may still write there
WORK=$(mktemp -d "$CACHE/build.work.XXXXXX")
cd "$WORK"
mkdir tmp
export GOPATH=$WORK/gopath GOCACHE=$WORK/gocache GOENV=off GO111MODULE=off CGO_ENABLED=0 GOTOOLCHAIN=local GOPROXY=off
export TMPDIR=$WORK/tmp PATH=${GO%/*}:$PATH
unset GOFLAGS GOROOT GOOS GOARCH GOBIN GOEXPERIMENT

say "reading the package sources"
derive_sources
fetch_source
cd gopath/src/k8s.io/kubernetes
say "generating what the package lacks"
generate_openapi
say "compiling kube-apiserver (minutes; log: $LOG)"
build_server
"$WORK/kube-apiserver" --version >>"$LOG"
mv -f "$WORK/kube-apiserver" "$CACHE/kube-apiserver"
say "done in $((SECONDS / 60)) min $((SECONDS % 60)) s: $CACHE/kube-apiserver ($(ready))"
