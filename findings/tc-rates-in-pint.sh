#!/bin/sh
# Rates as tc(8) takes them, read by a library of units: 10mbit is ten megabits, 10kbps ten kilobytes per second.
#
# Packages: Pint==0.25.3
# Guess: 10mbit is refused, since m is milli; 10kbps is read as kilobits.
# Seen: 10mbit is 0.01 bit without a word, 1gbit is refused as undefined, and 10kbps is 10,000 bit/s, an eighth
# of what tc means.
set -eu
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
cd "$there"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check --only-binary :all: Pint==0.25.3 platformdirs==4.5.0 typing_extensions==4.15.0 flexcache==0.3 flexparser==0.4
venv/bin/python - <<'PYTHON'
import pint

units = pint.UnitRegistry()
seen = [units("10 mbit").to("bit").magnitude, units("10 kbps").to("bit/s").magnitude]
try:
    units("1 gbit")
except pint.UndefinedUnitError as error:
    seen.append(str(error))
print(seen)
assert [round(seen[0], 6), round(seen[1], 6)] == [0.01, 10_000.0] and "gbit" in seen[2]
PYTHON
