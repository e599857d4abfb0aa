#!/bin/sh
# DuckDB has a type for times in nanoseconds. Two packets are 1 ns, two others 999 ns apart.
#
# Packages: duckdb==2.0.1
# Guess: the difference of two such times is in nanoseconds.
# Seen: the difference is an INTERVAL in microseconds: 1 ns apart gives 0, and 999 ns gives 1 us, for each
#   time is cut off first. The comparison of the same times is exact.
set -eu
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
cd "$there"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check --only-binary :all: duckdb==2.0.1
venv/bin/python - <<'EOF'
import duckdb

row = duckdb.sql("""
    SELECT epoch_us(later - first), epoch_us(last - later), last > later
    FROM (SELECT make_timestamp_ns(1700000000123456000) AS first,
                 make_timestamp_ns(1700000000123456001) AS later,
                 make_timestamp_ns(1700000000123457000) AS last)
""").fetchall()[0]
print("DuckDB", duckdb.__version__, "1 ns, 999 ns in us:", row)
assert row == (0, 1, True)
EOF
