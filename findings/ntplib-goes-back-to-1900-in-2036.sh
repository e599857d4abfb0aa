#!/bin/sh
# NTP's seconds begin again at 0 on 2036-02-07 06:28:16 UTC (RFC 5905, section 6). ntplib turns a time stamp
# of 256 s later into the system's time.
#
# Packages: ntplib==0.4.0
# Guess: it belongs to the era that is nearest to now, so to 2036.
# Seen: it becomes 256 s after the beginning of 1900.
set -eu
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
cd "$there"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check --only-binary :all: ntplib==0.4.0
venv/bin/python - <<'PYTHON'
from datetime import UTC, datetime

import ntplib

time = datetime.fromtimestamp(ntplib.ntp_to_system_time(256), UTC)
print("256 s after the seconds began again:", time)
assert time == datetime(1900, 1, 1, 0, 4, 16, tzinfo=UTC)
PYTHON
