#!/bin/sh
# The 99th percentile of ten latencies, from 10 to 17 ms, 18 ms and 40 ms.
#
# Packages: numpy==2.4.6; Python's own module `statistics`
# Guess: both are between 18 and 40 ms.
# Seen: NumPy says 38.0 ms. statistics.quantiles says 59.6 ms, above the slowest; its first percentile of these
# is 9.1 ms, below the fastest. With method="inclusive" it agrees with NumPy.
set -eu
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
cd "$there"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check --only-binary :all: numpy==2.4.6
venv/bin/python - <<'PYTHON'
from statistics import quantiles

import numpy

latencies = [10, 11, 12, 13, 14, 15, 16, 17, 18, 40]
seen = [
    round(float(numpy.percentile(latencies, 99)), 1),
    round(quantiles(latencies, n=100)[-1], 1),
    round(quantiles(latencies, n=100)[0], 1),
    round(quantiles(latencies, n=100, method="inclusive")[-1], 1),
]
print("NumPy p99, statistics p99, statistics p1, inclusive p99:", seen)
assert seen == [38.0, 59.6, 9.1, 38.0]
PYTHON
