"""Letting go of what was read of a mapped file.

A page of a mapping counts as memory of the process from when it is touched; one that reads a file from
beginning to end would seem to need as much memory as the file is large.
"""

import mmap

from analysis.pcap.format import Bytes


def release(data: Bytes) -> None:
    """Let go of all pages of a file that `map_bytes` mapped; they are mapped again when touched (madvise(2)).

    Of an array that is no mapping, nothing.
    """
    owner = getattr(data.base, "obj", None)
    if isinstance(owner, mmap.mmap):
        owner.madvise(mmap.MADV_DONTNEED)
