"""Events forwarded between clients, and batches with tombstones, are counted correctly."""

import pyarrow as pa
import pytest

from analysis.schemas import MESSAGES
from analysis.timelines import events, schemas, throughput
from analysis.timelines.delivery.stream_pieces import from_events
from tests.analysis.timelines.world import MS, ZERO, facts_of

FACTS = facts_of()


def arrived(host, peer, first_seq, count, t_ms, *, kind=0, type_="EVENTS", covered=None):
    row = dict.fromkeys(MESSAGES.names) | {
        "capture": f"{host}-eth0", "host": host, "direction": "in", "src": FACTS.hosts[peer].address,
        "dst": FACTS.hosts[host].address, "sport": 7000, "dport": 7000, "connection": 0, "stream_offset": 0,
        "length": 100, "retransmitted": False, "type": type_, "stream": 0, "kind": kind,
        "first_seq": first_seq,
        "count": count, "covered": count if covered is None else covered, "payload_length": 10 * count,
        "t_first_ns": ZERO + t_ms * MS, "t_complete_ns": ZERO + t_ms * MS,
    }  # fmt: skip
    return events.from_messages([pa.Table.from_pylist([row], schema=MESSAGES)], FACTS.hosts[host], FACTS)


def table(*rows):
    return pa.concat_tables(rows)


def sums(found):
    return [(row["source"], row["events"]) for row in throughput.arrivals(found, FACTS).to_pylist()]


def test_events_from_a_neighbour_count_like_those_from_the_proxy():
    found = table(
        arrived("r1-client-0", "r1-proxy-0", 1, 10, 0), arrived("r1-client-0", "r1-client-1", 11, 10, 1)
    )
    assert sums(found) == [("r1", 10), (None, 10)]  # a neighbour's are no server's
    cut = from_events(found, ("r1-client-0",))
    assert cut.arrived_ns.tolist() == [ZERO, ZERO + MS]


@pytest.mark.slow
def test_arrivals_stay_in_order_for_any_number_of_pieces():
    found = table(
        *(arrived("r1-client-0", "r1-proxy-0", 1 + n, 1, n * schemas.BIN_NS // MS) for n in range(150))
    )
    assert throughput.arrivals(found, FACTS).column("bin").to_pylist() == list(range(150))


def test_duplicates_from_a_second_neighbour_count_once():
    found = table(
        arrived("r1-client-0", "r1-proxy-0", 1, 10, 0), arrived("r1-client-0", "r1-client-1", 6, 10, 1)
    )
    assert sums(found) == [("r1", 10), (None, 5)]


def test_tombstones_cover_events_without_counting_as_deliveries():
    found = table(
        arrived("r1-client-0", "r1-proxy-0", 1, 1000, 0, kind=2),
        arrived("r1-client-0", "r1-proxy-0", 1001, 4, 1, type_="SPARSE_EVENTS", covered=10),
    )
    assert sums(found) == [("r1", 4)]
    cut = from_events(found, ("r1-client-0",))
    assert cut.count.tolist() == [1000, 10]


def test_a_batch_whose_reaches_were_not_captured_counts_for_its_events():
    row = arrived("r1-client-0", "r1-proxy-0", 1, 4, 0, type_="SPARSE_EVENTS").to_pylist()[0]
    assert (row["count"], row["events"]) == (4, 4)
