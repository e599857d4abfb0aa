"""Finds captures by file name. If one exists in several forms, the first of CAPTURE_ENDINGS is used."""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from analysis.capture.pcap.files.compressed import without_compression
from analysis.errors import CaptureError
from experiments.records.rundir import CAPTURE_ENDINGS


def find_captures(path: str) -> list[Path]:
    """Return the captures at a path, sorted by name. Raises CaptureError if there are none.

    path: a file, a folder, or a glob pattern of names in a folder. A pattern may match a capture's name with
    or without the suffix of compression. A capture that is also there in compressed form counts once.
    """
    place = Path(path)
    if place.is_file():
        return [place]
    folder, pattern = (place, "*") if place.is_dir() else (place.parent, place.name)
    names = (file.name for file in folder.iterdir()) if folder.is_dir() else ()
    found = captures_among(names, pattern)
    if not found:
        raise CaptureError(f"{path}: no captures there ({', '.join(CAPTURE_ENDINGS)})")
    return [folder / name for name in found]


def captures_among(names: Iterable[str], pattern: str = "*") -> list[str]:
    """Return the file names that are captures and match, each capture once, sorted."""
    found: dict[str, tuple[int, str]] = {}
    for name in names:
        order = next((order for order, ending in enumerate(CAPTURE_ENDINGS) if name.endswith(ending)), None)
        plain = without_compression(name)
        if order is not None and (
            pattern == plain or fnmatchcase(name, pattern) or fnmatchcase(plain, pattern)
        ):
            capture = Path(plain).stem
            found[capture] = min(found.get(capture, (order, name)), (order, name))
    return sorted(name for _, name in found.values())
