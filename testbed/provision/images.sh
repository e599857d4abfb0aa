#!/bin/sh
# Make the image cutset:debian-13, the systems under test in Debian 13's versions, unless it is in the user's cache.
#
# Needs mmdebstrap and skopeo (packages.txt), the network, and for a user other than root user namespaces. MIRROR: another mirror than mmdebstrap chooses.
set -eu

packages=nats-server,mosquitto,redis-server,valkey-server,etcd-server,rabbitmq-server
images=${XDG_CACHE_HOME:-$HOME/.cache}/cutset/images
made=$images/made/debian-13

[ ! -d "$made" ] || exit 0
mkdir -p "$images/made"
chmod 700 "$images"
partial=$(mktemp -d "$images/made/.partial-XXXXXX")
trap 'rm -rf "$partial"' EXIT
trap 'exit 130' INT TERM
echo "making $made: a minute or two, 1 GB" >&2
mmdebstrap --quiet --variant=minbase --include="$packages" trixie "$partial/root.tar" ${MIRROR:+"$MIRROR"}
skopeo copy --quiet --dest-compress "tarball:$partial/root.tar" "dir:$partial/image"
mv "$partial/image" "$made"
