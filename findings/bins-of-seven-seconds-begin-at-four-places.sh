#!/bin/sh
# Throughput in bins of 7 s: the bin of a packet of 2026-03-14 02:00:10, by five libraries.
#
# Packages: duckdb==2.0.1, polars==2.1.0, pandas==3.1.1, pyarrow==26.0.1, datafusion==55.0.0
# Guess: every bin begins at a multiple of 7 s since 1970.
# Seen: Polars, DataFusion, pandas' floor and Arrow count from 1970 (02:00:05); DuckDB's time_bucket from
#   2000-01-03 (02:00:08); pandas' resample from the beginning of the first day of the rows (02:00:10); Arrow
#   with calendar_based_origin from the last full minute (02:00:07). Bins that divide a day show no difference.
set -eu
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
cd "$there"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check --only-binary :all: duckdb==2.0.1 polars==2.1.0 pandas==3.1.1 \
    pyarrow==26.0.1 datafusion==55.0.0
venv/bin/python - <<'PYTHON'
from datetime import datetime

import datafusion
import duckdb
import pandas
import polars
import pyarrow
import pyarrow.compute as pc

time = datetime(2026, 3, 14, 2, 0, 10)
frame = pandas.DataFrame({"time": [time], "packets": [1]})
arrow = pyarrow.array([time])
question = "SELECT date_bin(INTERVAL '7 seconds', TIMESTAMP '2026-03-14T02:00:10') AS begin"
begins = {
    "duckdb time_bucket": duckdb.sql("SELECT time_bucket(INTERVAL 7 SECOND, time) FROM frame").fetchall()[0][0],
    "polars group_by_dynamic": polars.DataFrame({"time": [time]})
    .group_by_dynamic("time", every="7s").agg(polars.len())["time"][0],
    "datafusion date_bin": datafusion.SessionContext().sql(question).to_pylist()[0]["begin"],
    "pandas floor": frame.time.dt.floor("7s")[0],
    "pandas resample": frame.set_index("time").resample("7s").sum().index[0],
    "arrow floor_temporal": pc.floor_temporal(arrow, 7, "second")[0].as_py(),
    "arrow, calendar_based_origin": pc.floor_temporal(arrow, 7, "second", calendar_based_origin=True)[0].as_py(),
}
seconds = {name: begin.second for name, begin in begins.items()}
print("second at which the bin begins:", seconds)
assert list(seconds.values()) == [8, 5, 5, 5, 10, 5, 7]
PYTHON
