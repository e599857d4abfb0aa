"""Which hosts are compared, and that sets of events are compared instead of counts."""

from dataclasses import replace

import pyarrow as pa
import pytest

from analysis.schemas import CAPTURES, DECODING
from analysis.timelines import schemas
from analysis.timelines.agreement import PUBLISHED, compare, damaged_hosts, reset_hosts, unfit_hosts
from analysis.timelines.run_metadata import read_metadata
from experiments.records.run_record import record_from_json
from node.core.declaration import Marked
from tests.analysis.timelines.world import run_json, run_record

FACTS = read_metadata(run_record())


def decoding(**counts):
    numbers = dict.fromkeys(DECODING.names, 0) | {"capture": "r0-client-0-eth0", "host": "r0-client-0"}
    names = {"direction": "in", "src": "10.0.0.2", "dst": "10.0.0.4", "stopped": None, "reset": False}
    return pa.Table.from_pylist([numbers | names | counts], schema=DECODING)


def captures(problem=None):
    row = {"capture": "r0-client-0-eth0", "packets": 1, "bytes": 1, "good_bytes": 1, "problem": problem}
    return pa.Table.from_pylist([row], schema=CAPTURES)


STALE = {
    "missing_bytes": 103_754,
    "undecoded_bytes": 23_670,
    "stopped": "bytes 1 to 2 are not in the capture",
}


@pytest.mark.parametrize(
    ("counts", "problem", "damaged"),
    [
        ({}, None, {}),
        (STALE, None, {}),
        ({"malformed": 1}, None, {"r0-client-0": "its capture holds messages that could not be decoded (1)"}),
        ({}, "record 7 is cut off", {"r0-client-0": "its capture is damaged: record 7 is cut off"}),
    ],
    ids=["whole", "bytes that never came through a cut link", "undecodable messages", "a torn file"],
)
def test_a_capture_is_damaged_if_it_lacks_arrived_bytes(counts, problem, damaged):
    assert damaged_hosts(run_record(), decoding(**counts), captures(problem)) == damaged


def test_split_events_of_other_programs_are_not_damage():
    record = run_record()
    declared = replace(record.plan.declared, marked=Marked())
    record = replace(record, plan=replace(record.plan, declared=declared))
    servers = decoding(capture="r0-proxy-0-eth0", host="r0-proxy-0", malformed=3)
    clients = decoding(malformed=2)
    assert damaged_hosts(run_record(), servers, captures()) != {}
    assert damaged_hosts(record, servers, captures()) == {}
    assert damaged_hosts(record, pa.concat_tables([clients, servers]), captures()) == {
        "r0-client-0": "its capture holds messages that could not be decoded (2)"
    }


@pytest.mark.parametrize("drops", [1, None])
def test_a_host_whose_capture_may_have_dropped_packets_is_not_compared(drops):
    run = run_json()
    run["captures"][0]["kernel_drops"] = drops
    assert unfit_hosts(record_from_json(run), FACTS, {}) == {
        run["captures"][0]["host"]: "its capture dropped packets, or did not report drops"
    }


def test_a_host_that_was_not_captured_is_not_compared():
    run = run_json()
    run["captures"] = [capture for capture in run["captures"] if capture["host"] != "r0-client-0"]
    assert unfit_hosts(record_from_json(run), FACTS, {}) == {"r0-client-0": "it was not captured"}


def coverage(*rows):
    names = ("host", "stream", "events", "digest")
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema=schemas.COVERAGE)


def delivery(client, stream, covered, digest, published=10, published_digest=7):
    row = dict.fromkeys(schemas.DELIVERIES.names, 0) | {"client": client, "stream": stream}
    row |= {"duplicated_after": [], "out_of_order_after": [], "covered": covered, "digest": digest}
    return row | {"published": published, "published_digest": published_digest}


def held(packets, deliveries, unfit=(), reset=()):
    said = pa.Table.from_pylist(deliveries, schema=schemas.DELIVERIES)
    return compare(coverage(*packets), said, FACTS, dict.fromkeys(unfit, ""), reset).held


C0 = "r0-client-0"
BOTH = [(PUBLISHED, 0, 10, 7), (C0, 0, 10, 7)]
FEWER_PUBLISHED = [(PUBLISHED, 0, 9, 5), (C0, 0, 10, 7)]


@pytest.mark.parametrize(
    ("packets", "deliveries", "more", "expected"),
    [
        (BOTH, [(10, 7)], {}, True),
        ([*BOTH, (PUBLISHED, 1, 10, 7)], [(10, 7)], {}, True),
        (BOTH, [(9, 8)], {}, False),
        (BOTH, [(10, 8)], {}, False),
        (BOTH[:1], [(10, 7)], {}, False),
        (BOTH[1:], [], {}, False),
        ([], [], {}, None),
        (FEWER_PUBLISHED, [(10, 7)], {}, False),
        (FEWER_PUBLISHED, [(10, 7)], {"unfit": ["r0-proxy-0"]}, True),
        (FEWER_PUBLISHED, [(10, 7)], {"unfit": ["r1-proxy-0"]}, False),
        (BOTH, [(9, 8)], {"reset": [C0]}, True),
        (BOTH, [(9, 8)], {"reset": ["r1-client-0"]}, False),
        (BOTH, [(11, 8)], {"reset": [C0]}, False),
    ],
    ids=[
        "the same", "a stream that no client follows",
        "fewer", "as many others", "in records only", "in packets only", "nothing",
        "fewer published", "of a proxy without a whole capture", "another one's is not whole",
        "data of a reset connection may be unread", "another one was reset", "more than came",
    ],
)  # fmt: skip
def test_packets_and_records_must_agree(packets, deliveries, more, expected):
    assert held(packets, [delivery(C0, 0, *each) for each in deliveries], **more) is expected


def test_a_refused_connection_has_no_events():
    assert reset_hosts(decoding(reset=True, bytes=5)) == {"r0-client-0"}
    assert reset_hosts(decoding(reset=True)) == reset_hosts(decoding(bytes=5)) == frozenset()
