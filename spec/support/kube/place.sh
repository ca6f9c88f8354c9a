# shellcheck shell=bash disable=SC2034 # the variables are for the script that reads this
# Names the folder in which build.sh puts etcd, kube-apiserver and kubectl: to be read (`.`) by a script. Sets
#
#   kube_cache     $EVREC_CACHE, by default evrec/ below $XDG_CACHE_HOME or ~/.cache; without a home build/cache
#   kube_etcd      etcd's version
#   kube_version   Kubernetes' version
#   kube_bin       a folder in kube_cache. Its name has a checksum of the sources and pins, so that a changed pin makes
#                  other programs.
kube_here=${BASH_SOURCE[0]%/*}
[ -n "${EVREC_CACHE-}${XDG_CACHE_HOME-}${HOME-}" ] || export EVREC_CACHE="$PWD/build/cache"
kube_cache=$(realpath -m "${EVREC_CACHE:-${XDG_CACHE_HOME:-${HOME-}/.cache}/evrec}")
kube_etcd=$(sed -n 's,^require go.etcd.io/etcd/server/v3 v,,p' "$kube_here/etcd/go.mod")
kube_version=$(sed -n 's,^[[:space:]]k8s.io/kubernetes v,,p' "$kube_here/kube-apiserver/go.mod")
kube_sum=$(cat "$kube_here"/{etcd,kube-apiserver,kubectl}/{go.mod,go.sum,main.go} | sha256sum | cut -c 1-12)
kube_bin=$kube_cache/kube-$kube_version-$kube_sum
