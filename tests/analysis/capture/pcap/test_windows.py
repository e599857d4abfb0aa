"""Reading a capture in any windows equals a simple reader of the whole capture."""

from dataclasses import replace
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from analysis.capture.pcap.files.byte_ranges import TcpSegments
from analysis.capture.pcap.reassemble import WINDOW_BYTES_MAX
from analysis.capture.pcap.streams import WaitLimits
from node.protocols.sprinkler.messages import CODEC, Advertisement, Counter, Events, Subscribe, Unsubscribe
from tests.analysis.capture.pcap import complete_capture as whole
from tests.analysis.capture.pcap.captures import ACK, RST, START_NS, SYN
from tests.analysis.capture.pcap.complete_capture import Sent
from tests.analysis.capture.pcap.reading import windowed

EVER = WaitLimits(horizon_ns=1 << 60)
AT_ONCE = WaitLimits(horizon_ns=0)

message = st.one_of(
    st.builds(Subscribe, st.just(1), st.integers(0, 9)),
    st.builds(Unsubscribe, st.just(1)),
    st.builds(lambda n: Advertisement((Counter(1, 5),) * n), st.integers(0, 4)),
    st.builds(
        lambda n, size: Events(0, 0, 1, 1, n, size, 0, 0, bytes(n * size)),
        st.integers(1, 9),
        st.integers(1, 9),
    ),
)


@st.composite
def connection(draw: st.DrawFn, syn: st.SearchStrategy[bool]) -> list[Sent]:
    """Draw a connection's segments after a hostile network and an incomplete capture, without times."""
    isn = draw(st.sampled_from([7, 2**32 - 60, 2**31 - 20]))
    stream = b"".join(
        bytes(part) for one in draw(st.lists(message, min_size=1, max_size=8)) for part in CODEC.encode(one)
    )
    noise = draw(st.one_of(st.just(b""), st.binary(max_size=20)))
    at = draw(st.integers(0, len(stream)))
    stream = stream[:at] + noise + stream[at:]
    cuts = sorted({0, *draw(st.lists(st.integers(0, len(stream)), max_size=12)), len(stream)})
    ranges = list(pairwise(cuts))
    extra = st.integers(0, len(stream) - 1).flatmap(
        lambda a: st.tuples(st.just(a), st.integers(a + 1, a + 40))
    )
    ranges += draw(st.lists(extra, max_size=4))
    if draw(st.booleans()):
        ranges = draw(st.permutations(ranges))
    lost = draw(st.sets(st.integers(0, len(ranges) - 1), max_size=2))
    sent = [
        (isn + 1 + start, ACK, stream[start:end]) for n, (start, end) in enumerate(ranges) if n not in lost
    ]
    if draw(syn):
        sent.insert(0, (isn, SYN, b""))
    for _ in range(draw(st.integers(0, 2))):
        odd = draw(st.sampled_from([(isn, SYN, b""), (isn - 30, ACK, b"old"), (isn + 1, RST, b"reason")]))
        sent.insert(draw(st.integers(min(1, len(sent)), len(sent))), odd)
    snap = draw(st.sampled_from([1000, 1000, 30, 9, 1, 0]))
    return [Sent(0, seq % 2**32, flags, data, min(snap, len(data))) for seq, flags, data in sent]


captures = (
    st.tuples(connection(st.booleans()), st.lists(connection(st.just(value=True)), max_size=2))
    .map(lambda parts: [replace(one, t_ns=START_NS + n) for n, one in enumerate(chain(parts[0], *parts[1]))])
    .filter(len)
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("windows") / "r0-proxy-0-eth0.pcap"


def chosen(rows: list[dict[str, Any]], like: list[dict[str, Any]], leave: tuple[str, ...] = ()) -> list[Any]:
    """Return the reference's columns, in the order of streams."""
    names = [name for name in (like or [{}])[0] if name not in leave]
    return sorted(([row[name] for name in names] for row in rows), key=repr)


def cuts_of(draw: st.DataObject, sent: list[Sent]) -> list[int]:
    return sorted(draw.draw(st.lists(st.integers(0, len(sent)), max_size=6), label="cuts"))


@given(sent=captures, draw=st.data())
@pytest.mark.slow
def test_reading_in_windows_gives_the_same_messages(
    path: Path, sent: list[Sent], draw: st.DataObject
) -> None:
    found = windowed(path, sent, cuts_of(draw, sent), EVER)
    for name, wanted in whole.tables(sent, CODEC).items():
        assert len(found[name]) == len(wanted)
        assert chosen(found[name], wanted) == chosen(wanted, wanted)


@given(sent=captures, draw=st.data())
@pytest.mark.slow
def test_without_waiting_only_later_retransmissions_are_missed(
    path: Path, sent: list[Sent], draw: st.DataObject
) -> None:
    assume(sent[0].flags & SYN)  # without it, where a stream begins is only known after a while
    found = windowed(path, sent, cuts_of(draw, sent), AT_ONCE)
    for name, wanted in whole.tables(sent, CODEC).items():
        assert len(found[name]) == len(wanted)
        assert chosen(found[name], wanted, ("retransmitted",)) == chosen(wanted, wanted, ("retransmitted",))


def test_old_messages_are_emitted_before_the_capture_ends(path: Path) -> None:
    data = b"".join(bytes(part) for part in CODEC.encode(Subscribe(1, 2)))
    sent = [Sent(START_NS, 7, SYN, b"", 0)]
    sent += [Sent(START_NS + n, 8 + n * len(data), ACK, data, len(data)) for n in range(100)]
    path.write_bytes(b"")
    rows = windowed(path, sent, list(range(0, 100, 10)), WaitLimits(horizon_ns=20))
    assert [row["stream_offset"] for row in rows["messages"]] == [n * len(data) for n in range(100)]


def test_a_reset_is_recorded_for_its_connection_and_not_for_the_next(path: Path) -> None:
    first = [Sent(START_NS, 7, SYN, b"", 0), Sent(START_NS + 1, 8, ACK, b"data", 4)]
    reset = [Sent(START_NS + 2, 12, RST, b"", 0)]
    second = [Sent(START_NS + 3, 99, SYN, b"", 0), Sent(START_NS + 4, 100, ACK, b"more", 4)]
    rows = windowed(path, [*first, *reset, *second], [2, 3], AT_ONCE)["decoding"]
    assert [(row["reset"], row["bytes"], row["segments"]) for row in rows] == [(True, 4, 1), (False, 4, 1)]


@given(seed=st.integers(0, 2**32), pieces_max=st.integers(1, 20))
@settings(max_examples=15)
def test_waiting_segments_after_a_gap_are_bounded(path: Path, seed: int, pieces_max: int) -> None:
    random = np.random.default_rng(seed)
    data = b"".join(bytes(part) for _ in range(100) for part in CODEC.encode(Subscribe(1, 2)))
    ranges = [(n * 10, n * 10 + 10) for n in range(len(data) // 10) if random.random() > 0.2]
    sent = [Sent(START_NS, 7, SYN, b"", 0)]
    sent += [
        Sent(START_NS + n, 8 + start, ACK, data[start:end], end - start)
        for n, (start, end) in enumerate(ranges)
    ]
    patience = WaitLimits(horizon_ns=1 << 60, pieces_max=pieces_max)
    rows = windowed(path, sent, list(range(0, len(sent), 5)), patience)
    [counts] = rows["decoding"]
    assert (counts["bytes"], counts["segments"]) == (10 * len(ranges), len(ranges))
    assert sum(gap["length"] for gap in rows["gaps"]) == counts["missing_bytes"]
    assert counts["missing_bytes"] == ranges[-1][1] - 10 * len(ranges)


def reassembled(rows: list[tuple[int, int, int]]) -> whole.Stream:
    """Reassemble segments at once: flags, sequence number and length of each, one per nanosecond."""
    flags, seq, length = np.array(rows, np.int64).T
    at = np.arange(len(rows))
    [stream] = whole.reassemble(TcpSegments(at, seq % 2**32, flags, at * 100_000, length, length))
    return stream


def test_sequence_numbers_may_wrap_repeatedly() -> None:
    step = 1 << 28
    stream = reassembled([(ACK, n * step - 5, step) for n in range(100)])
    assert stream.settled.pieces.end[-1] == 100 * step
    assert stream.settled.missing[0].size == 0


def test_a_segment_of_an_earlier_connection_is_counted_and_ignored() -> None:
    strays = [(ACK, 101 - 50_000, 20), (ACK, 105 + WINDOW_BYTES_MAX + 5, 20)]
    stream = reassembled([(SYN, 100, 0), (ACK, 101, 4), *strays, (ACK, 105, 6)])
    counted = stream.connection.stray_segments, stream.connection.segments, stream.settled.pieces.end[-1]
    assert counted == (2, 4, 10)
    assert stream.settled.missing[0].size == 0
