"""Which files are captures, by their names: of several forms of one, the first counts."""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from analysis.capture.pcap.files.compressed import capture_name, without_compression
from analysis.errors import CaptureError
from experiments.records.rundir import CAPTURE_ENDINGS


def find_captures(path: str) -> list[Path]:
    """The captures that a path means, by name. Raises CaptureError if there are none.

    Each capture counts once, also if it is there both as it was and compressed; a pattern is one of the names
    that captures have when they are plain, or have now.
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
    """Those of some files' names that are captures and match, each capture once, in order."""
    forms: dict[str, tuple[int, str]] = {}
    for name in names:
        order = next((order for order, ending in enumerate(CAPTURE_ENDINGS) if name.endswith(ending)), None)
        if order is None or not any(fnmatchcase(one, pattern) for one in (name, without_compression(name))):
            continue
        capture = capture_name(Path(name))
        forms[capture] = min(forms.get(capture, (order, name)), (order, name))
    return sorted(name for _, name in forms.values())
