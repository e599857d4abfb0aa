#!/bin/sh
# TCP sequence numbers have 32 bits without a sign. A retransmission goes back from 7 to 5. Four libraries
# subtract.
#
# Packages: duckdb==2.0.1, polars==2.1.0, pyarrow==26.0.1, pandas==3.1.1
# Guess: each either fails or gives -2.
# Seen: four answers: DuckDB fails; Arrow, Pandas and Polars' minus wrap to 4294967294; diff() of Polars
#   gives -2, that of Pandas 4294967294.0.
set -eu
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
cd "$there"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check --only-binary :all: duckdb==2.0.1 polars==2.1.0 pyarrow==26.0.1 pandas==3.1.1
venv/bin/python - <<'EOF'
import duckdb
import pandas
import polars
import pyarrow
from pyarrow import compute

series, frame = polars.Series([7, 5], dtype=polars.UInt32), pandas.Series([7, 5], dtype="uint32")
seen = {
    "polars minus": (series[1:] - series[:1]).item(),
    "polars diff": series.diff()[1],
    "pandas diff": frame.diff()[1],
    "pyarrow": compute.subtract(pyarrow.scalar(5, pyarrow.uint32()), pyarrow.scalar(7, pyarrow.uint32())).as_py(),
}
print(seen)
assert list(seen.values()) == [4294967294, -2, 4294967294.0, 4294967294]
try:
    duckdb.sql("SELECT 5::UINTEGER - 7::UINTEGER").fetchall()
except duckdb.OutOfRangeException as error:
    print("duckdb:", error)
else:
    raise AssertionError("DuckDB subtracted")
EOF
