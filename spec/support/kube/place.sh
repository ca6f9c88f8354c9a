# shellcheck shell=bash disable=SC2034 # the variables are for the script that reads this
# Names the folder in which build.sh puts etcd, kube-apiserver and kubectl: to be read (`.`) by a script. Sets
#
#   kube_etcd      etcd's version
#   kube_version   Kubernetes' version
#   kube_bin       the folder, in the cache folder (see ../programs.sh)
kube_here=${BASH_SOURCE[0]%/*}
# shellcheck source=spec/support/programs.sh
. "$kube_here/../programs.sh"
kube_etcd=$(sed -n 's,^require go.etcd.io/etcd/server/v3 v,,p' "$kube_here/etcd/go.mod")
kube_version=$(sed -n 's,^[[:space:]]k8s.io/kubernetes v,,p' "$kube_here/kube-apiserver/go.mod")
kube_bin=$programs_cache/kube-$kube_version-$(programs_sum "$kube_here"/{etcd,kube-apiserver,kubectl})
