"""If receivers forward events, paths lead from host to host, and packets show them."""

from dataclasses import replace
from ipaddress import IPv4Address

import pyarrow as pa
import pytest

from analysis.schemas import MESSAGES
from analysis.timelines import schemas
from analysis.timelines.agreement import compare, coverage
from analysis.timelines.delivery.stream_pieces import from_records
from analysis.timelines.events import from_messages
from analysis.timelines.recovering import recovery
from analysis.timelines.recovering.delivery_history import DeliveryHistory
from analysis.timelines.recovering.failover_events import (
    FailoverEvent,
    FailoverKind,
    _relays,
    from_logs,
    reactions_to_fault,
    sources,
)
from analysis.timelines.recovering.host_paths import hops_of, host_sources, hosts_to
from analysis.timelines.recovering.run_faults import RunFault
from experiments.declared import Trait
from experiments.records.rundir import RunDirectory
from node.core.declaration import Reading
from node.core.deliveries import RecordKind
from tests.analysis.timelines.record_rows import record, records_table
from tests.analysis.timelines.world import CUT, MS, ZERO, S, facts_of

STREAM = 2  # of r2, published by r2-driver-0
BOTH = (Trait.SUBSCRIBER, Trait.SERVER)
KNOWN = facts_of()
READING = Reading(
    carries=("DOWN",), publish=("UP", "UP"), rerouted=("JOIN",), noticed=("silent",), routed=("ROUTE",),
    key_of=lambda stream: stream + 1,
)  # fmt: skip
METADATA = replace(
    KNOWN,
    declared=replace(
        KNOWN.declared,
        roles={"proxy": BOTH, "client": BOTH, "driver": (Trait.PUBLISHER, Trait.SERVER), "configuration": ()},
        contract=replace(KNOWN.declared.contract, audience="topic", since="subscription"),
    ),
    reading=READING,
)
TREE = {  # each host's parent; the publisher's root is r1-proxy-0
    "r1-proxy-0": "r2-driver-0", "r2-proxy-0": "r1-proxy-0", "r3-proxy-0": "r2-proxy-0",
    "r3-client-0": "r3-proxy-0", "r3-client-1": "r1-proxy-0", "r0-client-0": "r1-proxy-0",
}  # fmt: skip


def event(host: str, peer: str, first_seq: int, t_ns: int, via: str | None = None, count: int = 10):
    of = METADATA.hosts[host]
    return {
        "host": host, "region": of.region, "role": of.role, "kind": "arrived", "peer": peer, "via": via,
        "stream": STREAM, "first_seq": first_seq, "count": count, "events": count, "t_ns": t_ns, "bytes": 0,
    }  # fmt: skip


def table(events) -> pa.Table:
    return pa.Table.from_pylist(list(events), schema=schemas.EVENTS)


def in_tree(until_ns: int = CUT):
    """Yield a batch every 100 ms, which reaches all hosts 50 ms later."""
    for number, t_ns in enumerate(range(0, until_ns, 100 * MS)):
        for host, parent in TREE.items():
            yield event(host, parent, 10 * number + 1, ZERO + t_ns + 50 * MS)


def test_a_path_leads_from_host_to_host_back_to_the_publisher():
    sources = host_sources(table(in_tree()), METADATA)
    way = hosts_to(sources, METADATA.publishing_hosts(STREAM), "r3-client-0", ZERO + CUT)
    assert way == ("r2-driver-0", "r1-proxy-0", "r2-proxy-0", "r3-proxy-0", "r3-client-0")
    assert hops_of(way, METADATA) == (("r2", "r1"), ("r1", "r2"), ("r2", "r3"))


RELAYED = event("r3-client-0", "r2-proxy-0", 1_001, ZERO + CUT, via="r0-client-0")


def passed(host: str, peer: str, before_ns: int):
    """Return a batch that a relay passed on, before it arrived."""
    return event(host, peer, 1_001, ZERO + CUT - before_ns) | {"kind": "passed"}


@pytest.mark.parametrize(
    ("more", "source"),
    [
        ([event("r3-client-0", "r0-client-0", 1, ZERO + 900 * MS)], "r0-client-0 r2-proxy-0"),
        # The last relay is known from the message, the one before it by what the last one passed on.
        (
            [passed("r0-client-0", "r1-proxy-0", MS), passed("r1-proxy-0", "r2-proxy-0", 2 * MS)],
            "r0-client-0 r1-proxy-0 r2-proxy-0",
        ),
        (
            [
                passed("r0-client-0", "r1-proxy-0", MS), passed("r0-client-0", "r2-proxy-0", MS),
                passed("r1-proxy-0", "r3-proxy-0", 2 * MS),
            ],
            "r0-client-0 r2-proxy-0",
        ),
    ],
    ids=["duplicates are no source", "two relays", "a host that passed the same on for others, too"],
)  # fmt: skip
def test_relays_are_part_of_the_path_once(more, source):
    found = host_sources(table([*in_tree(), RELAYED, *more]), METADATA)
    assert found["r3-client-0"].names == ("r3-proxy-0", source)
    way = hosts_to(found, {"r2-driver-0"}, "r3-client-0", ZERO + CUT + 1)
    assert way[-len(source.split()) - 1 :] == (*source.split()[::-1], "r3-client-0")


def test_relays_in_logs_are_read_in_order():
    address = {name: int(IPv4Address(host.address)) for name, host in METADATA.hosts.items()}
    record = {
        "t_ns": 1, "peer": address["r3-proxy-0"], "relay": address["r1-proxy-0"],
        "further": [address["r0-proxy-0"], 1],
    }  # fmt: skip
    assert tuple(_relays(record, METADATA)) == ("r1-proxy-0", "r0-proxy-0")
    assert tuple(_relays({"peer": 1}, METADATA)) == ()


def test_a_loop_and_a_host_that_got_nothing_have_no_path():
    loop = [event("r0-client-0", "r3-client-0", 1, ZERO), event("r3-client-0", "r0-client-0", 1, ZERO)]
    sources = host_sources(table(loop), METADATA)
    assert hosts_to(sources, {"r2-driver-0"}, "r0-client-0", ZERO + 1) is None
    assert hosts_to(sources, {"r2-driver-0"}, "r1-client-0", ZERO + 1) is None


def batch(host: str, kind: RecordKind, first_seq: int, t_ns: int):
    return record(host, kind, STREAM, first_seq, 10, t_ns)


def affected(metadata=METADATA) -> dict[tuple[str, str], str]:
    clients = ["r3-client-0", "r3-client-1", "r0-client-0"]
    published, got = [], []
    for number, t_ns in enumerate(range(0, 14 * S, 100 * MS)):
        published.append(batch("r2-driver-0", RecordKind.PUBLISHED, 10 * number + 1, ZERO + t_ns))
        for client in clients:
            got.append(batch(client, RecordKind.DELIVERED, 10 * number + 1, ZERO + t_ns + 50 * MS))
    [cut] = from_records(*map(records_table, (published, [], got)), clients).blocks()
    history = DeliveryHistory(metadata, STREAM, cut, host_sources(table(in_tree()), metadata))
    return {
        (row["fault"], row["client"]): row["affected_by"]
        for row in recovery.pairs(history).to_pylist()
        if row["affected"]
    }


def test_only_hosts_behind_a_link_in_the_tree_are_affected_by_its_cut():
    assert affected() == {("cut", "r3-client-0"): "route"}


@pytest.mark.parametrize(
    ("killed", "clients"), [("r3-proxy-0", {"r3-client-0"}), ("r1-proxy-0", set(TREE)), ("r0-proxy-0", set())]
)
def test_only_hosts_behind_a_process_in_the_tree_are_affected_by_its_end(killed, clients):
    fault = replace(KNOWN.faults[0], name="kill", hops={}, processes=(killed,))
    found = affected(replace(METADATA, faults=(fault,)))
    assert {client for _, client in found} == clients & {"r3-client-0", "r3-client-1", "r0-client-0"}


@pytest.mark.parametrize(
    ("ends", "clients"),
    [
        (("r2-proxy-0", "r3-proxy-0"), {"r3-client-0"}),
        (("r1-proxy-0", "r3-client-1"), {"r3-client-1"}),
        (("r1-proxy-0", "r3-client-0"), set()),
    ],
)
def test_a_separation_affects_only_paths_between_its_hosts(ends, clients):
    fault = replace(
        KNOWN.faults[0], name="block", hops={}, processes=ends, apart=frozenset({frozenset(ends)})
    )
    found = affected(replace(METADATA, faults=(fault,)))
    assert {client for _, client in found} == clients


# --- Packets


def message(host: str, direction: str, other: str, t_ns: int, **content):
    ends = [METADATA.hosts[each].address for each in (host, other)]
    src, dst = ends if direction == "out" else reversed(ends)
    return dict.fromkeys(MESSAGES.names) | {
        "capture": host, "host": host, "direction": direction, "src": src, "sport": 1, "dst": dst, "dport": 2,
        "connection": 0, "stream_offset": 0, "length": 100, "t_first_ns": t_ns, "t_complete_ns": t_ns,
        "type": "DOWN", "stream": STREAM, "first_seq": 1, "count": 10, "retransmitted": False,
    } | content  # fmt: skip


def number_of(host: str) -> int:
    return int(IPv4Address(METADATA.hosts[host].address))


def events_of(host: str, *messages):
    rows = pa.Table.from_pylist(list(messages), schema=MESSAGES)
    found = from_messages([rows], METADATA.hosts[host], METADATA).to_pylist()
    return [(row["kind"], row["peer"], row["via"], row["first_seq"]) for row in found]


def test_forwarded_events_are_neither_arrivals_nor_sendings():
    ends = {"within": "RELAY", "source": number_of("r2-proxy-0"), "target": number_of("r3-proxy-0")}
    between = "r0-proxy-0"
    assert events_of(
        between,
        message(between, "in", "r2-proxy-0", 1, **ends),
        message(between, "out", "r3-proxy-0", 2, **ends),
    ) == [("passed", "r2-proxy-0", None, 1)]  # fmt: skip
    came = message("r3-proxy-0", "in", between, 3, **ends)
    assert events_of("r3-proxy-0", came) == [("arrived", "r2-proxy-0", between, 1)]
    left = message("r2-proxy-0", "out", between, 0, **ends)
    assert events_of("r2-proxy-0", left) == [("sent", "r3-proxy-0", between, 1)]


def test_routed_events_arrive_only_at_their_destination():
    host, routed = "r0-proxy-0", {"type": "UP", "within": "ROUTE"}
    passed_on = [
        message(host, "in", "r2-driver-0", 1, **routed),
        message(host, "out", "r1-proxy-0", 2, **routed),
    ]
    assert [kind for kind, *_ in events_of(host, *passed_on)] == ["passed"]
    stays = message(host, "in", "r2-driver-0", 3, **routed)
    found = [each for each in events_of(host, *passed_on, stays) if each[0] == "arrived"]
    assert found == [("arrived", "r2-driver-0", None, 1)]


def test_delivered_events_must_be_in_packets_and_others_may_be():
    arrived = table(event("r3-client-0", "r3-proxy-0", 1 + 10 * number, ZERO) for number in (0, 1))

    def held(*first_seqs: int) -> bool | None:
        got = [batch("r3-client-0", RecordKind.DELIVERED, first, ZERO) for first in first_seqs]
        found = coverage(STREAM, arrived, records_table(got), METADATA)
        (row,) = found.to_pylist() or [{"events": 0, "digest": 0}]
        said = {name: [None] for name in schemas.DELIVERIES.names} | {
            "client": ["r3-client-0"], "stream": [STREAM], "covered": [10 * len(first_seqs)],
            "digest": [row["digest"]], "published": [0], "published_digest": [0],
        }  # fmt: skip
        return compare(found, pa.table(said), replace(METADATA, outcome="completed"), {}).held

    assert held(1)
    assert held(1, 11)
    assert not held(1, 21)


def test_a_peers_own_events_are_only_in_its_records():
    declared = replace(
        METADATA.declared, roles={**METADATA.declared.roles, "driver": (Trait.PUBLISHER, *BOTH)}
    )
    metadata = replace(METADATA, declared=declared)
    got = [batch(host, RecordKind.DELIVERED, 1, ZERO) for host in ("r2-driver-0", "r3-client-0")]
    found = coverage(STREAM, table([]), records_table(got), metadata)
    assert [(row["host"], row["events"]) for row in found.to_pylist()] == [("r2-driver-0", 10)]


# --- Logs


def test_a_log_may_name_a_peer_by_its_address_and_a_stream_by_its_topic(tmp_path):
    run = RunDirectory(tmp_path)
    run.log("r3-proxy-0").parent.mkdir(parents=True)
    topic = READING.key_of(STREAM).to_bytes(16, "big").hex()
    run.log("r3-proxy-0").write_text(
        f'{{"t_ns": 7, "event": "silent", "topic": "{topic}", "peer": {number_of("r2-proxy-0")}}}\n'
        f'{{"t_ns": 8, "event": "silent", "topic": "none", "peer": 1}}\n'
    )
    silent = FailoverEvent(
        7, FailoverKind.NOTICED, "r3", "r2", STREAM, host="r3-proxy-0", peer_host="r2-proxy-0"
    )
    nobody = FailoverEvent(8, FailoverKind.NOTICED, "r3", None, None, host="r3-proxy-0")
    assert from_logs(run, METADATA) == [silent, nobody]


def test_actions_of_hosts_on_the_path_count():
    fault: RunFault = METADATA.applied_faults[0]
    way = ("r2-driver-0", "r2-proxy-0", "r3-proxy-0", "r3-client-0")

    def act(host: str, stream: int | None, peer: str | None) -> FailoverEvent:
        return FailoverEvent(
            fault.t_ns + 1, FailoverKind.NOTICED, "r3", "r2", stream, host=host, peer_host=peer
        )

    acts = [
        act("r3-proxy-0", STREAM, "r2-proxy-0"),
        act("r3-proxy-0", None, "r2-proxy-0"),
        act("r3-proxy-0", None, "r2-client-0"),
        act("r3-proxy-0", STREAM + 1, "r2-proxy-0"),
        act("r3-client-1", STREAM, "r2-proxy-0"),
    ]
    found = reactions_to_fault(
        acts, fault, fault.t_ns + 9, STREAM, "r3", struck=frozenset(), routes=METADATA.routes, hosts=way
    )
    assert found == acts[:2]


def test_relays_in_logs_are_part_of_the_path():
    relaying = replace(METADATA, reading=replace(READING, relayed=("relay", "direct")))

    def act(t_ns: int, what: FailoverKind, host: str, peer: str, *relays: str) -> FailoverEvent:
        region = METADATA.hosts[host].region
        stream = STREAM if what is FailoverKind.MOVED else None
        return FailoverEvent(t_ns, what, region, "r2", stream, host=host, peer_host=peer, relays=relays)

    acts = [
        act(1, FailoverKind.MOVED, "r3-proxy-0", "r2-proxy-0"),
        act(2, FailoverKind.RELAYED, "r2-proxy-0", "r3-proxy-0", "r0-proxy-0"),
        act(2, FailoverKind.RELAYED, "r2-proxy-0", "r3-client-0", "r1-proxy-0"),
        act(4, FailoverKind.RELAYED, "r2-proxy-0", "r3-proxy-0"),
        act(6, FailoverKind.RELAYED, "r2-proxy-0", "r3-proxy-0", "r1-proxy-0", "r0-proxy-0"),
    ]
    found = sources(acts, relaying)[STREAM]["r3-proxy-0"]
    assert [found.before(t_ns) for t_ns in (2, 3, 5, 7)] == [
        "r2-proxy-0", "r0-proxy-0 r2-proxy-0", "r2-proxy-0", "r0-proxy-0 r1-proxy-0 r2-proxy-0",
    ]  # fmt: skip
    first = [
        act(1, FailoverKind.MOVED, "r3-proxy-0", "r1-proxy-0"),
        act(2, FailoverKind.RELAYED, "r2-driver-0", "r1-proxy-0", "r0-proxy-0"),
    ]
    root = sources(first, relaying)[STREAM]["r1-proxy-0"]
    assert [root.before(t_ns) for t_ns in (2, 3)] == ["r2-driver-0", "r0-proxy-0 r2-driver-0"]
