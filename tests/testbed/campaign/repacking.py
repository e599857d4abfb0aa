"""A changed archive of a run, with a correct file count."""

import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import zstandard


def repacked(archive: Path, change: Callable[[Path], object]) -> Path:
    """Unpack the archive, change its directory, and pack it with a correct file count."""
    folder = archive.parent / "forged"
    plain = zstandard.ZstdDecompressor().stream_reader(archive.read_bytes()).read()
    with tarfile.open(fileobj=io.BytesIO(plain)) as tar:
        tar.extractall(folder, filter="data")
        order = [member.name for member in tar.getmembers()]
    [run] = folder.iterdir()
    change(run)
    left = [name for name in order if (folder / name).is_file()]
    content = io.BytesIO()
    headers = {"CUTSET.members": str(len(left))}
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT, pax_headers=headers) as tar:
        for name in left:
            tar.add(folder / name, name)
    archive.write_bytes(zstandard.compress(content.getvalue()))
    return archive
