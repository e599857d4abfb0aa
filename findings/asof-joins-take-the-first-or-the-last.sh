#!/bin/sh
# Three samples of a queue have the same time stamp. An "as of" join gives each packet the latest sample.
#
# Packages: duckdb==2.0.1, polars==2.1.0, pandas==3.1.1
# Guess: all take the last of the three rows.
# Seen: pandas and Polars take the last row, DuckDB the first.
set -eu
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
cd "$there"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check --only-binary :all: duckdb==2.0.1 polars==2.1.0 pandas==3.1.1 pyarrow==26.0.1
venv/bin/python - <<'PYTHON'
import duckdb
import pandas
import polars

packets = pandas.DataFrame({"time": [10]})
samples = pandas.DataFrame({"time": [5, 5, 5], "queue": [1, 2, 3]})
both = [polars.DataFrame(each.to_dict("list")) for each in (packets, samples)]
question = "SELECT queue FROM packets ASOF JOIN samples ON packets.time >= samples.time"
queue = {
    "pandas": int(pandas.merge_asof(packets, samples, on="time").queue[0]),
    "polars": both[0].join_asof(both[1], on="time")["queue"][0],
    "duckdb": duckdb.sql(question).fetchall()[0][0],
}
print("queue at the packet:", queue)
assert queue == {"pandas": 3, "polars": 3, "duckdb": 1}
PYTHON
