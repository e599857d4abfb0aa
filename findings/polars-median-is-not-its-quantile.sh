#!/bin/sh
# Polars, Pandas and DuckDB are asked for the median and for the quantile 0.5 of the latencies 1, 2, 3 and 4.
#
# Packages: polars==2.1.0, pandas==3.1.1
# Guess: the two are the same in each library.
# Seen: in Polars they are not: median() gives 2.5, quantile(0.5) takes the nearest value, 3. Pandas gives
#   2.5 for both.
set -eu
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
cd "$there"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check --only-binary :all: polars==2.1.0 pandas==3.1.1
venv/bin/python - <<'EOF'
import pandas
import polars

latencies = [1, 2, 3, 4]
one, other = polars.Series(latencies), pandas.Series(latencies)
seen = [one.median(), one.quantile(0.5), other.median(), other.quantile(0.5)]
print("polars:", seen[:2], "pandas:", seen[2:])
assert seen == [2.5, 3.0, 2.5, 2.5]
EOF
