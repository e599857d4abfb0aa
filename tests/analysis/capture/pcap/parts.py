"""Captures cut into parts as tcpdump would, for tests of what reads them."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

from experiments.records import capture_parts
from tests.analysis.capture.pcap.captures import Record, write_pcap

FIRST = 1_700_000_000


def write_parts(capture: Path, records: Sequence[Record], cuts: Iterable[int] = ()) -> Path:
    """Write records as parts of a capture, cut before these records; the last part is still open."""
    folder = capture_parts.folder_of(capture)
    folder.mkdir(parents=True)
    bounds = [0, *sorted(cuts), len(records)]
    for number, (first, following) in enumerate(pairwise(bounds)):
        write_pcap(folder / f"{FIRST + number}.pcap", records[first:following])
    return folder
