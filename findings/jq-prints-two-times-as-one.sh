#!/bin/sh
# Two packets are a nanosecond apart. jq groups their time stamps (JSON numbers of 19 digits) and prints them.
#
# Packages: jq==1.13.0 (of PyPI, with libjq)
# Guess: it rounds both to doubles, so they are one group.
# Seen: it compares them exactly and counts two groups, but prints both rounded to the same number. Their
# difference, 300 ns here, comes as 256.
set -eu
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
cd "$there"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check --only-binary :all: jq==1.13.0
venv/bin/python - <<'PYTHON'
import jq

times = "[1700000000000000001, 1700000000000000002]"
seen = [
    jq.compile("group_by(.) | length").input_text(times).first(),
    jq.compile(".").input_text(times).text(),
    jq.compile(".[1] - .[0]").input_text("[1700000000000000001, 1700000000000000301]").first(),
]
print(seen)
assert seen == [2, "[1700000000000000000, 1700000000000000000]", 256]
PYTHON
