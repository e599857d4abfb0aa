"""Drawn captures of all formats, link types and encapsulations give what tshark reads in them."""

import random
from pathlib import Path

import pytest

from tests.analysis.capture.pcap import drawn_captures
from tests.analysis.capture.pcap.judging import differences

SECTIONS = 30


def test_sections_of_pcapng(tmp_path: Path) -> None:
    sections = [drawn_captures.pcapng(random.Random(f"section {seed}")) for seed in range(SECTIONS)]
    (tmp_path / "a.pcapng").write_bytes(b"".join(sections))
    count, found = differences(tmp_path / "a.pcapng")
    assert count >= SECTIONS * drawn_captures.PACKETS
    assert found == []


@pytest.mark.parametrize("seed", [0, 2, 4, 10499])  # the last one: exchanged lengths, odd times
def test_variants_of_pcap(tmp_path: Path, seed: int) -> None:
    (tmp_path / "a.pcap").write_bytes(drawn_captures.pcap(random.Random(seed)))
    count, found = differences(tmp_path / "a.pcap")
    assert count == drawn_captures.PACKETS
    assert found == []
