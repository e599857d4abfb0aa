#!/bin/sh
# Install the Debian packages that are missing for a job ("machine", "run", "images", "routing", "systems" or "test"), and only those.
#
# Prints what it installs and why. Needs root or sudo only if packages are missing; prints nothing if none are.
# Exit codes: 0 all packages are installed, 2 no such job, 3 packages are missing and cannot be installed (a message
# says what to do).
set -eu

job=${1:-run}
here=$(dirname "$0")
PATH=$PATH:/usr/sbin:/sbin

has_java_17() {
    command -v java >/dev/null 2>&1 || return 1
    release=$(dirname "$(dirname "$(readlink -f "$(command -v java)")")")/release
    [ -r "$release" ] || return 1
    major=$(sed -n 's/^JAVA_VERSION="\([0-9]*\).*/\1/p' "$release")
    [ "${major:-0}" -ge 17 ]
}

missing() { # missing PROOF
    case $1 in
        java) ! has_java_17 ;;
        /*)
            set -- $1 # expand *: a folder may depend on the processor's architecture
            [ ! -e "$1" ]
            ;;
        *) ! command -v "$1" >/dev/null 2>&1 ;;
    esac
}

belongs() { # belongs JOB: whether $job needs the packages for JOB
    case $job in
        machine) [ "$1" = machine ] ;;
        run) [ "$1" = machine ] || [ "$1" = run ] ;;
        images | routing) [ "$1" = machine ] || [ "$1" = run ] || [ "$1" = "$job" ] ;;
        systems) [ "$1" != test ] && [ "$1" != images ] && [ "$1" != routing ] ;;
        test) [ "$1" != modules ] && [ "$1" != images ] && [ "$1" != routing ] ;;
    esac
}

case $job in machine | run | images | routing | systems | test) ;; *)
    printf 'cutset: no job %s: known are machine, run, images, routing, systems, test\n' "$job" >&2
    exit 2
    ;;
esac
packages=
while read -r name proof for why; do
    case $name in '#'* | '') continue ;; esac
    belongs "$for" || continue
    if missing "$proof"; then
        printf 'missing: %s (%s)\n' "$name" "$why" >&2
        packages="$packages $name"
    fi
done <"$here/packages.txt"
# The virtual environment needs pip for this Python; Debian has it in a separate package.
if [ "$job" != machine ] && ! "${PYTHON:-python3}" -I -c 'import ensurepip, venv' >/dev/null 2>&1; then
    printf 'missing: python3-venv (the virtual environment)\n' >&2
    packages="$packages python3-venv"
fi
[ -n "$packages" ] || exit 0

if [ "$(id -u)" = 0 ]; then
    root=
elif command -v sudo >/dev/null 2>&1; then
    root=sudo
else
    printf 'cutset: ask your administrator for:%s\n' "$packages" >&2
    exit 3
fi
command -v apt-get >/dev/null 2>&1 || {
    printf 'cutset: no apt-get here; install the contents of these packages:%s\n' "$packages" >&2
    exit 3
}
printf 'installing:%s\n' "$packages" >&2
log=$(mktemp)
# Runs start their own servers: the installation must not start new services on this machine.
units=
for package in $packages; do
    case $package in
        mosquitto) units="$units mosquitto.service" ;;
        nats-server | redis-server) units="$units $package.service" ;;
        etcd-server) units="$units etcd.service" ;;
        rabbitmq-server)
            units="$units rabbitmq-server.service"
            ! missing epmd || units="$units epmd.service epmd.socket" # Erlang's; if it was installed before, others may need them
            ;;
        openssh-server) units="$units ssh.service ssh.socket" ;;
    esac
done
services() { # services VERB
    if [ -n "$units" ] && command -v systemctl >/dev/null 2>&1; then
        # shellcheck disable=SC2086  # a list of units, word by word
        $root systemctl "$1" $units >/dev/null 2>&1 || :
    fi
}
tidy_up() {
    rm -f "$log"
    services unmask
}
trap tidy_up EXIT
trap 'exit 130' INT
trap 'exit 129' HUP
trap 'exit 143' TERM
services mask
# shellcheck disable=SC2086  # a list of names, word by word
if ! { $root apt-get update && $root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends $packages; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    printf 'cutset: apt-get could not install:%s\n' "$packages" >&2
    exit 3
fi
services unmask
services disable
