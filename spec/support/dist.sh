#!/bin/bash
# Packs the last commit as a release in a folder: evrec-VERSION.tar.gz, evrec-VERSION-1.rockspec, and of both
# evrec-VERSION-1.src.rock, which `luarocks install` takes as it is. The version is evrec.h's. The rockspec is
# rockspec/evrec-scm-1.rockspec with another version and source, so that one file lists the sources.
#
# usage: dist.sh FOLDER
#
# DIST_URL: the address of the folder from which others will get the .tar.gz, for `luarocks upload`
set -eu

folder=$1
version=$(git show HEAD:csrc/evrec.h | sed -n 's/^#define EVREC_VERSION "\(.*\)"/\1/p')
name=evrec-$version
changed=$(git status --porcelain)
[ -z "$changed" ] || printf 'evrec: these changes are not committed, so the release has none of them:\n%s\n' "$changed" >&2

rm -rf "$folder"
mkdir -p "$folder"
git archive --format=tar.gz --prefix="$name/" -o "$folder/$name.tar.gz" HEAD
git show HEAD:rockspec/evrec-scm-1.rockspec |
	sed -e "s|^version = \"scm-1\"|version = \"$version-1\"|" -e '/luarocks make/d' \
		-e "s|^\turl = \"\.\"|\turl = \"${DIST_URL:+${DIST_URL%/}/}$name.tar.gz\"|" >"$folder/$name-1.rockspec"
grep -q "^version = \"$version-1\"" "$folder/$name-1.rockspec"
grep -q "url = .*$name.tar.gz" "$folder/$name-1.rockspec"
(cd "$folder" && zip -q -X "$name-1.src.rock" "$name-1.rockspec" "$name.tar.gz")
ls "$folder"/*
