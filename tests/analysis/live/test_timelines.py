"""Live timelines settle events once, report each bin once, and use bounded memory."""

from dataclasses import replace

import numpy as np
import pytest

from analysis.live import timelines as live_timelines
from analysis.live.timelines import BINS_TOLD_MAX, IDLE_NS, EventBatch, Intervals, Latencies, LiveTimelines
from analysis.timelines.delivery.stream_pieces import Sets
from analysis.timelines.run_metadata import RunMetadata
from tests.analysis.timelines.world import MS, ZERO, S, facts_of

CLIENTS = ("r0-client-0", "r0-client-1")


@pytest.fixture(scope="module")
def metadata() -> RunMetadata:
    return facts_of()


def test_a_bin_is_reported_once_every_client_was_read_beyond_it(metadata: RunMetadata) -> None:
    live = LiveTimelines(metadata)
    nothing = live.take([], {})
    assert (nothing.throughput, nothing.latency, nothing.shown_until_ns) == ({}, {}, None)
    newest_ns = dict.fromkeys(metadata.clients, ZERO + 2 * S)
    slow = metadata.clients[0]
    news = live.take([], newest_ns | {slow: ZERO + 1 * S})
    assert [row[0] for row in news.throughput["r0"]] == [0.0, 0.2, 0.4, 0.6, 0.8]
    assert news.shown_until_ns == ZERO + 1 * S
    assert [row[0] for row in live.take([], newest_ns).throughput["r0"]] == [1.0, 1.2, 1.4, 1.6, 1.8]


def test_a_long_silent_client_delays_nothing(metadata: RunMetadata) -> None:
    newest_ns = dict.fromkeys(metadata.clients, ZERO + 60 * S)
    news = LiveTimelines(metadata).take([], newest_ns | {metadata.clients[0]: ZERO + 60 * S - IDLE_NS - 1})
    assert news.shown_until_ns == ZERO + 60 * S


def test_a_clock_that_is_set_ahead_leaves_a_gap(metadata: RunMetadata) -> None:
    live = LiveTimelines(metadata)
    live.take([], dict.fromkeys(metadata.clients, ZERO + 2 * S))
    news = live.take([], dict.fromkeys(metadata.clients, ZERO + 30 * 86_400 * S))
    assert len(news.throughput["r0"]) == BINS_TOLD_MAX


def published(first_seq: int, count: int, t_ns: int = 0) -> EventBatch:
    return EventBatch(True, "r0-driver-0", 0, first_seq, count, count, t_ns)


def arrived(host: str, first_seq: int, count: int, t_ns: int) -> EventBatch:
    return EventBatch(False, host, 0, first_seq, count, count, t_ns)


@pytest.fixture
def two(metadata: RunMetadata) -> RunMetadata:
    """Return the metadata with these clients only."""
    return replace(metadata, hosts={name: metadata.hosts[name] for name in CLIENTS}, disturbed=frozenset())


def settled(stream: Latencies, metadata: RunMetadata, wanted: Sets | None = None) -> list[tuple[int, ...]]:
    """Return publication times, latencies and counts of settled events."""
    samples = stream.settle(metadata, wanted)
    columns = ("published_ns", "latency_ns", "count")
    return list(zip(*(samples.column(name).to_pylist() for name in columns), strict=True))


def test_an_event_settles_when_the_last_client_has_it_and_only_once(two: RunMetadata) -> None:
    stream = Latencies(0)
    for batch in (published(1, 10, 100), arrived(CLIENTS[0], 1, 10, 150), arrived(CLIENTS[1], 1, 4, 160)):
        stream.add(batch)
    assert settled(stream, two) == [(100, 60, 4)]
    assert settled(stream, two) == []
    stream.add(arrived(CLIENTS[1], 5, 6, 190))
    stream.add(arrived(CLIENTS[0], 1, 10, 999))  # again, from a neighbour
    assert settled(stream, two) == [(100, 90, 6)]


def test_excluded_clients_do_not_delay_latency(two: RunMetadata) -> None:
    stream = Latencies(0)
    for batch in (published(1, 10, 100), arrived(CLIENTS[0], 1, 10, 150), arrived(CLIENTS[1], 1, 1, 990)):
        stream.add(batch)
    assert settled(stream, replace(two, disturbed=frozenset(CLIENTS[1:]))) == [(100, 50, 1), (100, 50, 9)]


def test_clients_without_a_right_to_an_event_do_not_delay_it(two: RunMetadata) -> None:
    stream = Latencies(0)
    for batch in (published(1, 10, 100), arrived(CLIENTS[0], 1, 10, 150), arrived(CLIENTS[1], 1, 2, 190)):
        stream.add(batch)
    from_3, all_of_them = (np.array([3]), np.array([7])), (np.array([1]), np.array([11]))
    must = {CLIENTS[0]: all_of_them, CLIENTS[1]: from_3}
    assert settled(stream, two, (must, must)) == [(100, 50, 2)]
    stream.add(arrived(CLIENTS[1], 3, 4, 180))
    assert settled(stream, two, (must, must)) == [(100, 80, 4), (100, 50, 4)]


def test_events_that_no_client_must_get_delay_nothing(two: RunMetadata) -> None:
    stream = Latencies(0)
    stream.add(published(1, 10, 100))
    assert settled(stream, two, ({}, {})) == []
    assert not stream.waiting


def test_a_bin_of_latency_grows_and_repeated_deliveries_do_not_count(two: RunMetadata) -> None:
    live = LiveTimelines(two)
    first = [arrived(host, 1, 90, ZERO + 40 * MS) for host in CLIENTS]
    update = live.take([published(1, 90, ZERO + 20 * MS), *first], dict.fromkeys(CLIENTS, ZERO + 1 * S))
    assert update.latency == {"r0": [[0.0, 20.0, 20.0, 20.0]]}
    assert update.throughput["r0"][0] == [0.0, 450.0]
    again = [arrived(host, 1, 90, ZERO + 1100 * MS) for host in CLIENTS]
    late = [published(91, 10, ZERO + 150 * MS), *(arrived(host, 91, 10, ZERO + 250 * MS) for host in CLIENTS)]
    update = live.take([*again, *late], dict.fromkeys(CLIENTS, ZERO + 2 * S))
    assert update.latency == {"r0": [[0.0, 20.0, 100.0, 100.0]]}
    assert [rate for _, rate in update.throughput["r0"]] == [0.0] * 5


def test_a_stream_with_a_lost_event_continues_beyond_the_waiting_limit(
    monkeypatch: pytest.MonkeyPatch, two: RunMetadata
) -> None:
    monkeypatch.setattr(live_timelines, "WAITING_MAX", 3)
    stream = Latencies(0)
    for number in range(5):
        stream.add(published(1 + number, 1, number))
        stream.add(arrived(CLIENTS[0], 1 + number, 1, 100))
        if number:
            stream.add(arrived(CLIENTS[1], 1 + number, 1, 100))
    assert settled(stream, two) == []
    assert stream.given_up == 1
    assert [published_ns for published_ns, _, _ in settled(stream, two)] == [1, 2, 3, 4]


def test_intervals_count_only_new_numbers() -> None:
    seen = Intervals()
    assert seen.add(10, 20) == 10
    assert seen.add(10, 20) == 0
    assert seen.add(30, 40) == 10
    assert seen.add(15, 35) == 10
    assert seen.add(0, 50) == 20
    assert seen.add(50, 51) == 1
