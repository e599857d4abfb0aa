#!/bin/sh
# Values of tc(8) given to pyroute2's netem and tbf: "1.5ms", and "1mbps", which are megabytes per second there.
#
# Packages: pyroute2==0.9.7
# Guess: they mean what they mean in tc.
# Seen: both raise a KeyError, of '.5ms' and 'mbps'. "1ms", "1kb" (1024 bytes) and "1mibit" mean the same.
set -eu
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
cd "$there"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check --only-binary :all: pyroute2==0.9.7
venv/bin/python - <<'PYTHON'
from pyroute2.netlink.rtnl.tcmsg.common import get_rate, get_size, get_time


def result(convert, text):
    try:
        return convert(text)
    except KeyError as error:
        return repr(error)


found = {text: result(get_time, text) for text in ("1ms", "1.5ms")}
found |= {text: result(get_rate, text) for text in ("8kbit", "1mibit", "1mbps")} | {"1kb": get_size("1kb")}
print("microseconds, bytes per second, bytes:", found)
assert list(found.values()) == [1000.0, "KeyError('.5ms')", 1000.0, 131072.0, "KeyError('mbps')", 1024]
PYTHON
