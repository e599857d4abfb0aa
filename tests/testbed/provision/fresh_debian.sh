#!/bin/sh
# Test README.md in a fresh Debian 12, as root. `make test-provision` sets up and runs an experiment there as an ordinary
# user, and prints which steps work; `make test-fresh` runs `make test` there ($ARGS are its ARGS).
#
# debootstrap makes a minimal tree in a new folder, the root of a mount and PID namespace. Mounts and processes of the tree
# end with the namespace. Packages come from the sources that this machine's apt and pip are configured to use: the tree
# gets a copy of apt's Debian sources and of pip's settings, and the folders that pip's settings name (read-only). The
# checkout is cloned, and uncommitted files are copied over it, for a user who is not root.
# Tests there can build networks, boot kernels and start browsers. For this the tree is the root of the mount namespace
# (the kernel refuses user namespaces in a chroot) and has a /proc of its PID namespace, this machine's /dev and /sys with
# its cgroups, and a /dev/shm.
# Exit code: that of the first step that fails.
set -eu

release=bookworm
here=$(cd "$(dirname "$0")/../../.." && pwd)

job=${1:-provision}

fail() { # fail TEXT
    printf 'fresh Debian: %s\n' "$1" >&2
    exit 3
}

sources() { # apt's sources of the release and its updates, as lines for sources.list
    apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
        grep -E "^deb [^ ]+ $release(-[a-z]+)? " | sort -u
}

folders() { # local folders in pip's settings; of a package index the whole folder, not only its list
    "$here/.venv/bin/python" -m pip config list | grep -v '\.cert=' | grep -oE "/[^ ,'\\]+" |
        sed 's|^//*|/|; s|/simple$||' | sort -u | while read -r folder; do [ ! -d "$folder" ] || echo "$folder"; done
}

inside() { # with the tree as root
    mount --bind "$tree" "$tree"
    for folder in dev sys; do mount --rbind "/$folder" "$tree/$folder"; done
    mount -t tmpfs -o mode=1777 none "$tree/dev/shm"
    for folder in $(folders); do
        mkdir -p "$tree$folder"
        mount --bind -o ro "$folder" "$tree$folder"
    done
    cd "$tree"
    mkdir -p old
    pivot_root . old
    mount -t proc none proc
    umount -l old
    exec chroot . /bin/sh home/lab/cutset/tests/testbed/provision/in_fresh_debian.sh "$job"
}

if [ "$job" = inside ]; then
    tree=$2 job=$3
    inside
fi
case $job in provision | fresh) ;; *) fail "no job $job: known are provision, fresh" ;; esac
[ "$(id -u)" = 0 ] || fail "needs root (for a root file system of its own): sudo make test-$job"
mirror=$(sources | awk -v r="$release" '$3 == r && $4 == "main" { print $2; exit }')
[ -n "$mirror" ] || fail "apt on this machine knows no source of Debian $release"
tree=$(mktemp -d "${TMPDIR:-/tmp}/cutset-fresh-XXXXXX")
chmod 755 "$tree"
trap 'rm -rf --one-file-system "$tree"' EXIT
trap 'exit 130' INT TERM
printf 'a fresh Debian %s in %s\n' "$release" "$tree"
debootstrap --variant=minbase "$release" "$tree" "$mirror" >"$tree.log" 2>&1 || {
    tail -n 20 "$tree.log" >&2
    rm -f "$tree.log"
    fail 'debootstrap failed'
}
rm -f "$tree.log"
sources >"$tree/etc/apt/sources.list"
grep -lsiE 'Acquire::.*(proxy|https)' /etc/apt/apt.conf /etc/apt/apt.conf.d/* | while read -r file; do
    cp "$file" "$tree/etc/apt/apt.conf.d/"
done
cp /etc/resolv.conf /etc/hosts "$tree/etc/"
chroot "$tree" useradd --create-home lab
git clone --quiet --depth 1 "file://$here" "$tree/home/lab/cutset"
(cd "$here" && git ls-files -z --cached --others --exclude-standard --deduplicate |
    tar --null --files-from=- --ignore-failed-read -cf -) | tar -xf - -C "$tree/home/lab/cutset"
# pip's own settings; the certificates apart, for the tree's package of them would replace the file.
for file in pip.conf .config/pip/pip.conf .pip/pip.conf; do
    case $file in .*) from=$HOME to=home/lab ;; *) from=/etc to=etc ;; esac
    [ ! -f "$from/$file" ] || install -D "$from/$file" "$tree/$to/$file"
done
chroot "$tree" chown -R lab: /home/lab
if [ -n "${PIP_CERT:=$("$here/.venv/bin/python" -m pip config get global.cert 2>/dev/null || :)}" ]; then
    cp "$PIP_CERT" "$tree/machine-certificates.crt"
    export PIP_CERT=/machine-certificates.crt REQUESTS_CA_BUNDLE=/machine-certificates.crt
fi
unshare --mount --pid --fork --kill-child --propagation private sh "$0" inside "$tree" "$job"
