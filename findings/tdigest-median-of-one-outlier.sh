#!/bin/sh
# 99 requests take 1 ms, one takes 1,000 ms. Two implementations of the t-digest are asked for percentiles.
# (tdigest needs a C compiler to install.)
#
# Packages: tdigest==0.5.2.2, pyarrow==26.0.1
# Guess: the median is 1 in both.
# Seen: tdigest says 10.99, a latency that no request had, and 990 for the 99th percentile; Arrow's digest
#   says 1 for the median. tdigest merges equal values into one centroid and draws a line from it to the
#   next.
set -eu
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
cd "$there"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check tdigest==0.5.2.2 pyarrow==26.0.1
venv/bin/python - <<'EOF'
import pyarrow
from pyarrow import compute
from tdigest import TDigest

latencies = [1.0] * 99 + [1000.0]
digest = TDigest()
for latency in latencies:
    digest.update(latency)
median, p99 = digest.percentile(50), digest.percentile(99)
other = compute.tdigest(pyarrow.array(latencies), 0.5)[0].as_py()
print("tdigest:", median, p99, "pyarrow:", other)
assert (round(median, 2), round(p99)) == (10.99, 990)
assert other == 1
EOF
