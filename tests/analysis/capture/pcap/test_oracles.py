"""tshark and tcptrace reassemble the same bytes and count the same retransmissions."""

import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from analysis.capture.pcap.files.mapping import map_bytes
from analysis.capture.pcap.streams import HostCapture, directions
from node.protocols.sprinkler.messages import CODEC
from tests.analysis.capture.pcap.captures import ACK, PSH, START_NS, SYN, Record, segment, write_pcap
from tests.analysis.capture.pcap.complete_capture import reassemble
from tests.analysis.capture.pcap.reading import extract, packets

FIN = 0x01
ROUND_TRIP_NS = 2_000_000
STEP_NS = 10_000_000  # within a round trip, tshark takes what came again for out of order
SERVER = ("10.0.0.2", 7000)
Ranges = list[tuple[int, int]]


@dataclass(frozen=True)
class Case:
    """How one connection's segments arrive: a function that reorders or repeats them, and settings."""

    shuffle: Callable[[Ranges, np.random.Generator], Ranges]
    isn: int = 1_000_000
    port: int = 0
    syn: bool = True
    answered: bool = True


def in_order(ranges: Ranges, _: np.random.Generator) -> Ranges:
    return ranges


def again(ranges: Ranges, random: np.random.Generator) -> Ranges:
    """Repeat some segments, at varying distances."""
    found = list(ranges)
    for place in sorted(random.choice(len(ranges) - 12, 8, replace=False), reverse=True):
        found.insert(int(place) + int(random.integers(1, 12)), ranges[place])
    return found


def overlapping(ranges: Ranges, random: np.random.Generator) -> Ranges:
    """Retransmit segments with other boundaries and new data at the end."""
    found = list(ranges)
    for place in sorted(random.choice(range(4, len(ranges) - 4), 8, replace=False), reverse=True):
        start, end = ranges[place - 2]
        found.insert(int(place), (start + (end - start) // 2, ranges[place - 1][1]))
    return found


def swapped(ranges: Ranges, random: np.random.Generator) -> Ranges:
    """Swap neighbouring segments."""
    found = list(ranges)
    for place in random.choice(range(1, len(ranges) - 2), 6, replace=False):
        found[place], found[place + 1] = found[place + 1], found[place]
    return found


def everything(ranges: Ranges, random: np.random.Generator) -> Ranges:
    return again(overlapping(swapped(ranges, random), random), random)


CASES = {
    "in order": Case(in_order, port=40_000),
    "retransmitted": Case(again, port=40_001),
    "wrapping": Case(again, isn=2**32 - 900, port=40_002),
    "overlapping": Case(overlapping, port=40_003),
    "reordered": Case(swapped, port=40_004),
    "all at once": Case(everything, isn=2**32 - 3000, port=40_005),
    "one-sided": Case(again, port=40_006, answered=False),
    "from the middle": Case(again, port=40_007, syn=False, answered=False),
    "ports used again": Case(again, isn=77, port=40_000),
}
ORDERLY = ("in order", "retransmitted", "wrapping", "one-sided", "from the middle", "ports used again")


@dataclass(frozen=True)
class StreamContent:
    """The extracted client bytes of one connection."""

    content: bytes
    segments_again: int
    bytes_again: int


def connection(name: str, start_ns: int) -> list[Record]:
    case, random = CASES[name], np.random.default_rng(list(CASES).index(name))
    bounds = np.concatenate(([0], np.cumsum(random.integers(2, 120, 60)))).tolist()
    payload = random.integers(0, 256, bounds[-1], np.uint8).tobytes()
    client = ("10.0.0.1", case.port)
    opening = [segment(case.isn, flags=SYN, src=client)] if case.syn else []
    if case.answered:
        opening.append(segment(500, flags=SYN | ACK, src=SERVER, dst=client, ack=case.isn + 1))
    frames = []
    for begin, end in case.shuffle(list(pairwise(bounds)), random):
        frames.append(segment(case.isn + 1 + begin, payload[begin:end], flags=ACK | PSH, src=client, ack=501))
    frames.append(segment(case.isn + 1 + len(payload), flags=FIN | ACK, src=client, ack=501))
    records = [Record(start_ns + n * ROUND_TRIP_NS // 2, frame) for n, frame in enumerate(opening)]
    first_ns = start_ns + ROUND_TRIP_NS
    return records + [Record(first_ns + n * STEP_NS, frame) for n, frame in enumerate(frames)]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a capture of all cases at the same time, except those with reused ports."""
    records: list[Record] = []
    for number, name in enumerate(CASES):
        later = 2_000 * STEP_NS if name == "ports used again" else 0
        records += connection(name, START_NS + number * 1_000 + later)
    folder = tmp_path_factory.mktemp("oracles")
    return write_pcap(folder / "a.pcap", sorted(records, key=lambda record: record.t_ns))


@pytest.fixture(scope="module")
def ours(path: Path) -> dict[str, StreamContent]:
    data = map_bytes(path)
    found: dict[str, StreamContent] = {}
    for key, segments in directions(packets(path), SERVER[1]):
        for stream in reassemble(segments) if key[5] == SERVER[1] else ():
            names = [name for name, case in CASES.items() if case.port == key[2]]
            pieces = stream.settled.pieces
            places = zip(pieces.at.tolist(), pieces.captured.tolist(), strict=True)
            found[names[stream.connection.number]] = StreamContent(
                b"".join(data[at : at + length].tobytes() for at, length in places),
                stream.connection.repeated_segments,
                stream.connection.repeated_bytes,
            )
    return found


@pytest.fixture(scope="module")
def tshark(path: Path) -> dict[str, bytes]:
    """Return the streams that tshark follows, in the order in which connections begin."""
    options = [part for number in range(len(CASES)) for part in ("-z", f"follow,tcp,raw,{number}")]
    command = ["tshark", "-n", "-r", str(path), "-q", *options]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found: dict[str, bytes] = {}
    for block in said.split("Follow: tcp,raw")[1:]:
        stream = int(re.findall(r"Filter: tcp.stream eq (\d+)", block)[0])
        found[list(CASES)[stream]] = bytes.fromhex("".join(re.findall(r"^[0-9a-f]+$", block, re.MULTILINE)))
    return found


@pytest.fixture(scope="module")
def tcptrace(path: Path) -> dict[str, dict[str, int]]:
    said = subprocess.run(["tcptrace", "-nl", str(path)], capture_output=True, text=True, check=True).stdout
    blocks = re.split(r"TCP connection \d+:", said)[1:]
    wanted = ("unique bytes sent", "rexmt data pkts", "rexmt data bytes")
    counts = [{name: int(re.findall(rf"{name}: +(\d+)", block)[0]) for name in wanted} for block in blocks]
    return dict(zip(CASES, counts, strict=True))


@pytest.mark.parametrize("name", CASES)
def test_tshark_follows_to_the_same_bytes(
    name: str, ours: dict[str, StreamContent], tshark: dict[str, bytes]
) -> None:
    assert len(ours[name].content) > 2_000
    assert ours[name].content == tshark[name]


@pytest.mark.parametrize("name", CASES)
def test_tcptrace_counts_the_same(
    name: str, ours: dict[str, StreamContent], tcptrace: dict[str, dict[str, int]]
) -> None:
    assert tcptrace[name] == {
        "unique bytes sent": len(ours[name].content),
        "rexmt data pkts": ours[name].segments_again,
        "rexmt data bytes": ours[name].bytes_again,
    }


def test_tshark_counts_the_same_retransmissions(path: Path, ours: dict[str, StreamContent]) -> None:
    """Compare orderly streams only: with reordering tshark guesses whether a segment is a retransmission."""
    command = ["tshark", "-n", "-r", str(path), "-Y", "tcp.analysis.retransmission", "-T", "fields"]
    said = subprocess.run([*command, "-e", "tcp.stream"], capture_output=True, text=True, check=True).stdout
    streams = [int(line) for line in said.split()]
    found = {name: streams.count(number) for number, name in enumerate(CASES)}
    assert {name: found[name] for name in ORDERLY} == {name: ours[name].segments_again for name in ORDERLY}
    assert sum(found[name] for name in ORDERLY) > 30


def test_the_table_of_decoding_counts_retransmissions(path: Path, ours: dict[str, StreamContent]) -> None:
    rows = extract(HostCapture(str(path), "server", *SERVER), CODEC)["decoding"].to_pylist()
    again_in = sum(row["retransmitted_segments"] for row in rows if row["direction"] == "in")
    assert again_in == sum(told.segments_again for told in ours.values())
