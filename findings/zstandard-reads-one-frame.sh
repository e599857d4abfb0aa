#!/bin/sh
# Two Zstandard files that are joined are one valid file with two frames; a capture that is compressed in
# parts looks so. python-zstandard, lz4 and Arrow read such files.
#
# Packages: zstandard==0.25.0, lz4==4.4.5, pyarrow==26.0.1
# Guess: all read both frames, as `zstd -d` and gzip's readers do.
# Seen: zstandard.decompress() and read_to_iter() return the first frame and drop the rest without an error,
#   stream_reader() reads both; lz4.frame.decompress() returns the first, lz4.frame.open() both. Arrow reads
#   both.
set -eu
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
cd "$there"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check --only-binary :all: zstandard==0.25.0 lz4==4.4.5 pyarrow==26.0.1
venv/bin/python - <<'EOF'
from io import BytesIO
from pathlib import Path

import lz4.frame
import pyarrow
import zstandard

both = zstandard.compress(b"first") + zstandard.compress(b"second")
lz4s = lz4.frame.compress(b"first") + lz4.frame.compress(b"second")
Path("both.zst").write_bytes(both)
engine = zstandard.ZstdDecompressor()
seen = {
    "zstandard.decompress": zstandard.decompress(both),
    "read_to_iter": b"".join(engine.read_to_iter(BytesIO(both))),
    "stream_reader": engine.stream_reader(BytesIO(both)).read(),
    "lz4.frame.decompress": lz4.frame.decompress(lz4s),
    "lz4.frame.open": lz4.frame.open(BytesIO(lz4s)).read(),
    "pyarrow": pyarrow.input_stream("both.zst", compression="zstd").read(),
}
for name, content in seen.items():
    print(name, content)
whole = b"firstsecond"
assert list(seen.values()) == [b"first", b"first", whole, b"first", whole, whole]
EOF
