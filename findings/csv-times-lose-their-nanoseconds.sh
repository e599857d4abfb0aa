#!/bin/sh
# A CSV file has the times of two packets that are 210 ns apart, with nine digits, as tshark prints them.
# DuckDB, Polars and Arrow find out the types of columns themselves.
#
# Packages: duckdb==2.0.1, polars==2.1.0, pyarrow==26.0.1
# Guess: all keep the nine digits, at least as text.
# Seen: Arrow keeps them; DuckDB and Polars choose microseconds and cut the rest off without a word, so that
#   the two times are equal.
set -eu
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
cd "$there"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check --only-binary :all: duckdb==2.0.1 polars==2.1.0 pyarrow==26.0.1
venv/bin/python - <<'EOF'
from pathlib import Path

import duckdb
import polars
from pyarrow import csv

Path("times.csv").write_text("time\n2026-03-14T02:00:00.123456789\n2026-03-14T02:00:00.123456999\n")
distinct = {
    "duckdb": duckdb.sql("SELECT count(DISTINCT time), min(typeof(time)) FROM 'times.csv'").fetchall()[0],
    "polars": polars.read_csv("times.csv", try_parse_dates=True)["time"].n_unique(),
    "pyarrow": len(csv.read_csv("times.csv")["time"].unique()),
}
print("distinct times:", distinct)
assert distinct == {"duckdb": (1, "TIMESTAMP"), "polars": 1, "pyarrow": 2}
EOF
