#!/bin/sh
# The part of fresh_debian.sh that runs inside the fresh tree. provision: installs as root, as the Vagrantfile does in a
# machine; sets up, examines and runs as an ordinary user. fresh: follows README.md as root, with git, make and Python.
# Prints one line per step that works.
set -eu
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/home/lab LC_ALL=C.UTF-8
cd /home/lab/cutset

step() { # step TEXT COMMAND…: run it; print that it works and its duration, or print its output and exit
    text=$1
    shift
    begun=$(date +%s)
    if "$@" >/tmp/output 2>&1; then
        printf '  works  %-62s %4s s\n' "$text" $(($(date +%s) - begun))
    else
        code=$?
        cat /tmp/output >&2
        printf '  FAILS  %s (exit code %s)\n' "$text" "$code"
        exit "$code"
    fi
}

silent() { # silent COMMAND…: succeed if it prints nothing
    "$@" >/tmp/said 2>&1 && [ ! -s /tmp/said ]
}

lab() { # lab COMMAND…: as the ordinary user
    runuser -u lab -- "$@"
}

measured() { # measured COMMAND…: whether a run was analysed to its end; this machine may be too busy for a valid one
    lab "$@" || [ $? = 1 ]
    test -s runs/*/report.html
}

offered() { # whether the prompt's own example works in it
    printf 'r0-client-0 ping -c 1 r1-proxy-0\n' | lab .venv/bin/cutset shell link-failure --out shells --no-analyze >/tmp/said 2>&1
    grep ' 1 received' /tmp/said || { cat /tmp/said; false; }
}

if [ "$1" = fresh ]; then
    chown -R root: .
    export HOME=/root
    step 'apt-get install git make python3' sh -c 'apt-get update && apt-get install -y --no-install-recommends git make python3'
    step 'make test: sets up what is missing, then checks and tests everything' make test ARGS="${ARGS:-}"
    grep -E '^SKIPPED|^=* ?[0-9]+ (passed|skipped)' /tmp/output | sed 's/^/         /'
    exit
fi
provision=testbed/provision/provision.sh
step 'provision.sh machine: what a machine of an inventory needs' sh "$provision" machine
step '  a second time: nothing to do, nothing said' silent sh "$provision" machine
step 'provision.sh run: what starting runs and analysing needs' sh "$provision" run
step '  a second time: nothing to do, nothing said' silent sh "$provision" run
step 'make setup: Python packages by version and hash' lab make setup
step 'cutset doctor: nothing is missing' lab .venv/bin/cutset doctor
sed 's/^/         /' /tmp/output
step 'cutset run link-failure: the network, the nodes, and the analysis' measured \
    .venv/bin/cutset run link-failure --set workload.rate=2000/s --set duration=15s \
    --set faults.0.at=4s --set faults.1.at=8s --set 'expect=[events.lost == 0]'
grep -E '^(verdict|fidelity| +[a-z]|events|after|expected)' /tmp/output | sed 's/^/         /'
step 'cutset shell: the prompt offers ping, and hosts have it' offered
