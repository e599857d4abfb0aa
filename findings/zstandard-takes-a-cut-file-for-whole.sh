#!/bin/sh
# A compressed file is cut off in the middle, as by a full disk. Readers of Zstandard, LZ4 and gzip read it to
# its end.
#
# Packages: zstandard==0.25.0, lz4==4.4.5, pyarrow==26.0.1
# Guess: each raises an error at the end.
# Seen: zstandard.open() and stream_reader() return what they could decode, and no error; lz4, gzip, and
#   Arrow's reader of Zstandard raise.
set -eu
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
cd "$there"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check --only-binary :all: zstandard==0.25.0 lz4==4.4.5 pyarrow==26.0.1
venv/bin/python - <<'EOF'
import gzip
from io import BytesIO
from pathlib import Path
from random import Random

import lz4.frame
import pyarrow
import zstandard

content = Random(1).randbytes(300_000)
cut = zstandard.compress(content)[:200_000]
Path("cut.zst").write_bytes(cut)
got = [
    zstandard.open(BytesIO(cut)).read(),
    zstandard.ZstdDecompressor().stream_reader(BytesIO(cut)).read(),
]
print("zstandard:", [len(each) for each in got], "bytes of", len(content))
assert all(0 < len(each) < len(content) and content.startswith(each) for each in got)
for name, read in {
    "lz4": lambda: lz4.frame.open(BytesIO(lz4.frame.compress(content)[:200_000])).read(),
    "gzip": lambda: gzip.open(BytesIO(gzip.compress(content)[:200_000])).read(),
    "pyarrow": lambda: pyarrow.input_stream("cut.zst", compression="zstd").read(),
}.items():
    try:
        read()
    except (EOFError, OSError) as error:
        print(name, "raises", error)
    else:
        raise AssertionError(f"{name} read a cut file")
EOF
