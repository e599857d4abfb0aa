"""Which hosts can be compared, and that a set of events is compared rather than a number."""

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


def test_whole_captures_are_not_damaged():
    assert damaged_hosts(run_record(), decoding(), captures()) == {}


def test_bytes_that_never_came_through_a_cut_link_are_no_damage():
    stale = decoding(
        missing_bytes=103_754, undecoded_bytes=23_670, stopped="bytes 1 to 2 are not in the capture"
    )
    assert damaged_hosts(run_record(), stale, captures()) == {}


def test_messages_that_cannot_be_decoded_are_damage():
    assert list(damaged_hosts(run_record(), decoding(malformed=1), captures())) == ["r0-client-0"]


def test_events_of_programs_that_others_than_clients_send_in_pieces_are_no_damage():
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


def test_a_torn_file_is_damage():
    found = damaged_hosts(run_record(), decoding(), captures("record 7 is cut off"))
    assert found == {"r0-client-0": "its capture is damaged: record 7 is cut off"}


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


def test_packets_and_records_must_agree():
    packets = [(PUBLISHED, 0, 10, 7), ("r0-client-0", 0, 10, 7)]
    assert held(packets, [delivery("r0-client-0", 0, 10, 7)]) is True
    assert held(packets, [delivery("r0-client-0", 0, 9, 8)]) is False
    assert held(packets, [delivery("r0-client-0", 0, 10, 8)]) is False


def test_events_on_only_one_side_are_a_disagreement():
    assert held([(PUBLISHED, 0, 10, 7)], [delivery("r0-client-0", 0, 10, 7)]) is False
    assert held([("r0-client-0", 0, 10, 7)], []) is False


def test_comparing_publications_needs_complete_captures_of_proxies_and_drivers():
    packets = [(PUBLISHED, 0, 9, 5), ("r0-client-0", 0, 10, 7)]
    assert held(packets, [delivery("r0-client-0", 0, 10, 7)]) is False
    assert held(packets, [delivery("r0-client-0", 0, 10, 7)], unfit=["r0-proxy-0"]) is True
    assert held(packets, [delivery("r0-client-0", 0, 10, 7)], unfit=["r1-proxy-0"]) is False


def test_data_of_a_reset_connection_may_be_unread():
    packets = [(PUBLISHED, 0, 10, 7), ("r0-client-0", 0, 10, 7)]
    fewer = [delivery("r0-client-0", 0, 9, 8)]
    assert held(packets, fewer, reset=["r0-client-0"]) is True
    assert held(packets, fewer, reset=["r1-client-0"]) is False
    assert held(packets, [delivery("r0-client-0", 0, 11, 8)], reset=["r0-client-0"]) is False


def test_a_connection_that_was_refused_had_nothing():
    assert reset_hosts(decoding(reset=True, bytes=5)) == {"r0-client-0"}
    assert reset_hosts(decoding(reset=True)) == reset_hosts(decoding(bytes=5)) == frozenset()


def test_nothing_comparable_is_no_verdict():
    assert held([], []) is None
