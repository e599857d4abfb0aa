#!/bin/sh
# A CSV file has TCP flags as tshark's "-T fields -e tcp.flags" prints them: 0x0012.
#
# Packages: duckdb==2.0.1, polars==2.1.0, pandas==3.1.1, pyarrow==26.0.1
# Guess: all four read text.
# Seen: DuckDB and Arrow read the number 18, Polars and pandas the text. A comparison with '0x0012' is then true
#   in some and an error or never true in others.
set -eu
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
cd "$there"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check --only-binary :all: duckdb==2.0.1 polars==2.1.0 pandas==3.1.1 \
    pyarrow==26.0.1
venv/bin/python - <<'PYTHON'
from pathlib import Path

import duckdb
import pandas
import polars
from pyarrow import csv

Path("flags.csv").write_text("frame,flags\n1,0x0012\n2,0x0010\n")
first = {
    "duckdb": duckdb.sql("SELECT flags FROM 'flags.csv' ORDER BY frame").fetchall()[0][0],
    "arrow": csv.read_csv("flags.csv")["flags"][0].as_py(),
    "polars": polars.read_csv("flags.csv")["flags"][0],
    "pandas": pandas.read_csv("flags.csv")["flags"][0],
}
print("flags of the first packet:", first)
assert list(first.values()) == [18, 18, "0x0012", "0x0012"]
PYTHON
