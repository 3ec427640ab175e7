#!/bin/sh
# Make the image that ours are built on, for machines that reach a Debian mirror and no registry of images; as root, with debootstrap.
#     docker/make_base.sh podman IMAGE [MIRROR]        (or docker instead of podman)
set -eu
engine=$1 image=$2 mirror=${3:-}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
debootstrap --variant=minbase bookworm "$folder/root" $mirror > "$folder/log" || { tail "$folder/log" >&2; exit 1; }
# the mirror of this machine stays here: images look for Debian where Debian's own image does
printf 'deb http://deb.debian.org/debian bookworm main\n' > "$folder/root/etc/apt/sources.list"
tar --directory "$folder/root" --exclude './dev/*' --exclude './var/cache/apt/*' --exclude './var/lib/apt/lists/*' --create . | "$engine" import - "$image"
