#!/bin/sh
# Lengths of packets lie in columns of 16 and of 32 bits, and their sum exceeds 4 GiB or 64 KiB. Polars, Arrow
# and DuckDB add them.
#
# Packages: duckdb==2.0.1, polars==2.1.0, pyarrow==26.0.1
# Guess: all three widen the sum.
# Seen: Polars widens 16 bits, but the sum of 32 bits wraps at 4 GiB without a word; Arrow widens a sum, but
#   not a cumulative sum; DuckDB widens.
set -eu
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
cd "$there"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check --only-binary :all: duckdb==2.0.1 polars==2.1.0 pyarrow==26.0.1
venv/bin/python - <<'EOF'
import duckdb
import polars
import pyarrow
from pyarrow import compute

lengths = pyarrow.table({"bytes": pyarrow.array([4_294_967_295, 2], pyarrow.uint32())})
column = polars.Series([4_294_967_295, 2], dtype=polars.UInt32)
seen = {
    "polars, 16 bits": polars.Series([60_000, 60_000], dtype=polars.UInt16).sum(),
    "polars": column.sum(),
    "pyarrow": compute.sum(lengths["bytes"]).as_py(),
    "pyarrow, cumulative": compute.cumulative_sum(lengths["bytes"])[-1].as_py(),
    "duckdb": duckdb.sql("SELECT sum(bytes) FROM lengths").fetchall()[0][0],
}
print(seen)
assert list(seen.values()) == [120_000, 1, 4_294_967_297, 1, 4_294_967_297]
EOF
