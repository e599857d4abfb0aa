"""What TCP did across a link that came back, from hand-made packets on both sides of the link."""

from dataclasses import replace
from ipaddress import ip_address

import pyarrow as pa
import pytest

from analysis.capture.pcap.reassemble import ACK, FIN, RST, SYN
from analysis.timelines.links.tcp_outages import LinkOutage, link_outages, measure, retry_s
from analysis.timelines.run_metadata import RunMetadata
from tests.analysis.timelines.world import MS, ZERO, facts_of

DIRECTIONS = [("r2-r3", "forward"), ("r2-r3", "backward")]
CLIENT, SERVER = ("r2-proxy-0", 40_000), ("r3-proxy-0", 7_000)
ANOTHER = ("r2-proxy-0", 40_002)
PAYLOAD = {"payload_length": 100}


@pytest.fixture(scope="module")
def metadata() -> RunMetadata:
    """Return a run whose link r2-r3 is down from 5 to 9 s."""
    return facts_of("faults=[{name: cut, at: 5s, cut: [r2, r3], for: 4s}]", "expect=[]")


def packets(metadata: RunMetadata, rows: list[tuple]) -> pa.Table:
    """Return packets of (milliseconds, source, target, flags, payload length)."""

    def address(end: tuple[str, int]) -> int:
        return int(ip_address(metadata.hosts[end[0]].address))

    return pa.table(
        {
            "t_ns": [ZERO + ms * MS for ms, *_ in rows],
            "src_lo": [address(source) for _, source, *_ in rows],
            "dst_lo": [address(target) for _, _, target, *_ in rows],
            "sport": [source[1] for _, source, *_ in rows],
            "dport": [target[1] for _, _, target, *_ in rows],
            "proto": [6] * len(rows),
            "flags": [flags for *_, flags, _ in rows],
            "payload_length": [length for *_, length in rows],
        }
    )


def measured(metadata: RunMetadata, near: list[tuple], far: list[tuple]) -> list[dict]:
    """Return the rows of the link. near: packets that entered it, far: those that left it."""
    schema = packets(metadata, [(0, CLIENT, SERVER, ACK, 0)]).schema

    def sides(rows: list[tuple]) -> list[pa.Table]:
        forward = [row for row in rows if row[1][0].startswith("r2")]
        backward = [row for row in rows if row not in forward]
        return [packets(metadata, some).cast(schema) for some in (forward, backward)]

    return measure(DIRECTIONS, sides(near), sides(far), metadata).to_pylist()


BEFORE = [(4_000, CLIENT, SERVER, SYN, 0), (4_900, CLIENT, SERVER, ACK, 100)]
TRIES = [
    (5_200, CLIENT, SERVER, ACK, 100),
    (6_000, CLIENT, SERVER, ACK, 100),
    (8_000, CLIENT, SERVER, ACK, 100),
]
NEXT = [(12_000, CLIENT, SERVER, ACK, 100)]


def test_an_open_connection_is_silent_until_its_next_try(metadata):
    near = [*BEFORE, *TRIES, (9_500, SERVER, CLIENT, ACK, 0), *NEXT]
    [row] = measured(metadata, near, [(12_020, CLIENT, SERVER, ACK, 100)])
    assert (row["client"], row["server"], row["port"], row["open"]) == (
        "r2-proxy-0",
        "r3-proxy-0",
        7_000,
        True,
    )
    assert (row["from_s"], row["to_s"], row["tries"]) == (5.0, 9.0, 3)
    assert (row["last_try_s"], row["next_try_s"], row["through_s"]) == (8.0, 12.0, 12.02)
    assert (row["ended_s"], row["ended_by"], row["ended_how"]) == (None, None, None)


@pytest.mark.parametrize(("flags", "how"), [(RST, "RST"), (FIN | ACK, "FIN")])
def test_closed_connections_and_their_replacements_are_reported(metadata, flags, how):
    near = [
        *BEFORE,
        *TRIES,
        (8_500, SERVER, CLIENT, flags, 0),
        (8_700, ANOTHER, SERVER, SYN, 0),
        (9_800, ("r2-proxy-0", 40_004), SERVER, SYN, 0),
        (9_900, ("r2-proxy-0", 40_006), SERVER, SYN, 0),
    ]
    rows = measured(metadata, near, [])
    [old] = [row for row in rows if row["open"]]
    assert (old["ended_s"], old["ended_by"], old["ended_how"]) == (8.5, "r3-proxy-0", how)
    tried, new = (row for row in rows if not row["open"])
    assert (tried["tries"], tried["last_try_s"], tried["next_try_s"]) == (1, 8.7, None)
    assert (new["tries"], new["next_try_s"]) == (0, 9.8)
    table = pa.Table.from_pylist(rows)
    assert retry_s(table, 9.0) == pytest.approx(0.8)


def test_connections_that_had_ended_or_never_tried_do_not_count(metadata):
    half = [*BEFORE, (4_950, CLIENT, SERVER, FIN | ACK, 0)]
    assert [row["open"] for row in measured(metadata, half, [])] == [True]
    assert measured(metadata, [*half, (4_960, SERVER, CLIENT, FIN | ACK, 0)], []) == []
    refused = [(4_100, CLIENT, SERVER, SYN, 0), (4_110, SERVER, CLIENT, RST | ACK, 0)]
    assert measured(metadata, refused, []) == []
    assert [row["open"] for row in measured(metadata, [*refused, *BEFORE[1:]], [])] == []
    again = [*refused, (4_300, CLIENT, SERVER, SYN, 0), *BEFORE[1:]]
    assert [row["open"] for row in measured(metadata, again, [])] == [True]
    [idle] = measured(metadata, [*BEFORE, *NEXT], [])
    assert (idle["open"], idle["tries"], idle["next_try_s"]) == (True, 0, 12.0)
    assert retry_s(pa.Table.from_pylist([idle]), 9.0) is None


def test_the_slowest_pair_of_hosts_counts_and_only_outages_that_ended_with_the_last_change(metadata):
    other = ("r2-client-0", 40_000)
    near = [*BEFORE, (4_800, other, SERVER, ACK, 100), *TRIES, (6_500, other, SERVER, ACK, 9), *NEXT]
    rows = pa.Table.from_pylist(measured(metadata, [*near, (9_300, other, SERVER, ACK, 9)], []))
    assert retry_s(rows, 9.0) == pytest.approx(3.0)
    assert retry_s(rows, 14.0) is None
    assert retry_s(pa.Table.from_pylist(measured(metadata, near, [])), 9.0) is None, "one never tried again"


def test_only_the_failed_direction_of_a_one_way_cut_counts():
    one_way = facts_of(
        "faults=[{name: cut, at: 5s, cut: [r2, r3], direction: forward, for: 4s}]", "expect=[]"
    )
    near = [*BEFORE, *TRIES, (7_000, SERVER, CLIENT, ACK, 100), (9_100, SERVER, CLIENT, ACK, 100), *NEXT]
    [row] = measured(one_way, near, [])
    assert (row["tries"], row["last_try_s"], row["next_try_s"]) == (3, 8.0, 12.0)


def test_outages_of_both_directions_are_joined_and_a_lasting_one_left_out():
    def periods(*times_s: tuple[float | None, float | None, bool]) -> list:
        [some, *_] = facts_of().periods["r2-r3", "forward"]
        return [
            replace(
                some,
                start_ns=None if start is None else round(start * 1e9),
                end_ns=None if end is None else round(end * 1e9),
                state="up" if up else "blackhole",
            )
            for start, end, up in times_s
        ]

    forward = periods((None, 2, True), (2, 4, False), (4, 8, True), (8, None, False))
    backward = periods((None, 3, True), (3, 5, False), (5, None, True))
    assert link_outages([forward, backward]) == [LinkOutage(2 * 10**9, 5 * 10**9, frozenset({0, 1}))]
