"""A changed archive of a run, with a correct file count."""

import io
import json
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import zstandard


def repacked(archive: Path, change: Callable[[Path], object]) -> Path:
    """Unpack the archive, change its directory, and pack it with a correct file count."""
    folder = archive.parent / "forged"
    shutil.rmtree(folder, ignore_errors=True)
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


def plant(run: Path, figure: str, value: object) -> None:
    """Falsify a claim in claims.json."""
    said = json.loads((run / "claims.json").read_text())
    next(each for each in said["claims"] if each["figure"] == figure)["value"] = value
    (run / "claims.json").write_text(json.dumps(said))
