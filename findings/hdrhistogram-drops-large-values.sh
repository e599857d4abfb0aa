#!/bin/sh
# A histogram of latencies in ms is made for 1 to 60,000. A request of 100,000 ms is recorded.
#
# Packages: hdrhistogram==0.10.8
# Guess: it raises an error, as Java's does, or counts the value at the limit.
# Seen: record_value() returns False and counts nothing, so the worst latencies are missing from count, mean
#   and percentiles; values up to 65,535, beyond the limit, are counted.
set -eu
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
cd "$there"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check --only-binary :all: hdrhistogram==0.10.8
venv/bin/python - <<'EOF'
from hdrh.histogram import HdrHistogram

histogram = HdrHistogram(1, 60_000, 3)
counted = [histogram.record_value(latency) for latency in (10, 60_001, 65_535, 65_536, 100_000)]
print("recorded:", counted, "count:", histogram.get_total_count(), "max:", histogram.get_max_value())
assert counted == [True, True, True, False, False]
assert histogram.get_total_count() == 3
assert histogram.get_max_value() == 65_535
EOF
