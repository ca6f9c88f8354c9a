#!/bin/bash
# Runs a command as a container runs it: as process 1, in a root folder of its own, with few rights. Needs the rights to
# make namespaces. Ends with the command's exit code.
#
# usage: pod.sh FOLDER USER WORKDIR [NAME=VALUE...] COMMAND...
# FOLDER has what the image adds to Debian, e.g. usr/local, operator, var/run. The root shows it, over this machine's
# /usr, which is read-only, at FOLDER.root. USER is the number of user and group.
set -eu

folder=$(realpath "$1") user=$2 workdir=$3
shift 3

# shellcheck disable=SC2016 # for the inner shell
exec unshare --mount --pid --fork --kill-child bash -euc '
	folder=$0 user=$1 workdir=$2
	shift 2
	root=$folder.root
	mkdir -p "$root"
	mount -t tmpfs -o mode=755 pod "$root"
	mkdir "$root"/{usr,proc,etc}
	cp -P /bin /lib* "$root" 2>/dev/null || true # in Debian 12 links into /usr
	mount --bind /usr "$root/usr"
	mount --bind "$folder/usr/local" "$root/usr/local"
	mount -o remount,bind,ro "$root/usr"
	mount -t proc proc "$root/proc"
	cp /etc/ld.so.cache "$root/etc"
	for name in "$folder"/*; do
		[ "${name##*/}" = usr ] || { mkdir "$root/${name##*/}" && mount --bind "$name" "$root/${name##*/}"; }
	done
	exec chroot --userspec="$user:$user" "$root" /usr/bin/env -i -C "$workdir" PATH=/usr/local/bin:/usr/bin:/bin "$@"
' "$folder" "$user" "$workdir" "$@"
