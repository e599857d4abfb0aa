"""Meghdoot's zones from the nodes' logs, the effects of faults on them, and the report section."""

import json
from ipaddress import IPv4Address

import pytest

from analysis.pages.report.run_reader import AnalysedRun
from analysis.systems.meghdoot.report import report
from analysis.systems.meghdoot.zones import covered, read_zones, unsettled
from analysis.timelines.run_metadata import read_metadata
from experiments.records.rundir import RunDirectory
from node.protocols.can.territory import logged
from node.protocols.can.zones import Zone, whole_space
from node.protocols.meghdoot.messages import CODEC
from node.protocols.meghdoot.reading import READING
from tests.analysis.timelines.world import ZERO, S, run_record

OVERRIDES = (
    "system=meghdoot", "parameters={}", "paper=null", "expect=[]", "roles={publisher: 1, subscriber: 1}",
    "workload={kind: content, event_size: 60B, rate: 10/s, attributes: [{name: price, max: 100},"
    " {name: volume, type: integer, min: 1, max: 1001}],"
    " subscriptions: {each: 1, templates: [{weight: 1, ranges: {price: 10%}}]}}",
    "faults=[{name: cut, at: 5s, cut: [r2, r3]}, {name: restore, at: 9s, restore: [r2, r3]},"
    " {name: crash, at: 11s, kill: r1/subscriber-0}]",
)  # fmt: skip
RECORD = run_record(*OVERRIDES)
METADATA = read_metadata(RECORD)
A, B, C = "r2-subscriber-0", "r3-subscriber-0", "r1-subscriber-0"
LEFT, RIGHT = whole_space(4).split(0, 0.25)
BELOW, ABOVE = RIGHT.split(1, 0.5)


def write(run: RunDirectory, host: str, t_ns: int, event: str, **fields: object) -> None:
    """Append a line to a node's log."""
    run.log(host).parent.mkdir(parents=True, exist_ok=True)
    with run.log(host).open("a") as log:
        log.write(json.dumps({"t_ns": ZERO + t_ns, "event": event, **fields}) + "\n")


def has(run: RunDirectory, host: str, t_ns: int, *zones: tuple[Zone, int]) -> None:
    write(run, host, t_ns, "zones", zones=[logged(*each) for each in zones])


def address(host: str) -> int:
    return int(IPv4Address(METADATA.hosts[host].address))


@pytest.fixture
def run(tmp_path) -> RunDirectory:
    """Return a run: A takes over B's zone in the cut and returns it; then C dies and A takes over its
    zone.
    """
    run = RunDirectory(tmp_path)
    has(run, A, -2 * S, (LEFT, 0))
    has(run, B, -1 * S, (BELOW, 0))
    has(run, C, -1 * S, (ABOVE, 0))
    write(run, A, 6 * S, "failed", peer=address(B))
    write(run, A, 7 * S, "takeover", peer=address(B), count=1)
    has(run, A, 7 * S, (LEFT, 0), (BELOW, 1))
    has(run, A, 10 * S, (LEFT, 0))
    write(run, A, 12 * S, "takeover", peer=address(C), count=1)
    has(run, A, 12 * S, (LEFT, 0), (ABOVE, 1))
    return run


def analysed() -> AnalysedRun:
    nothing: dict = dict.fromkeys(("throughput", "latency", "recovery", "fidelity", "missing"), ())
    return AnalysedRun(run=RECORD, summary={}, **nothing)


def test_zones_are_those_last_logged_and_killed_nodes_have_none(run):
    zones = read_zones(run, METADATA)
    before, during, after = (zones.at(ZERO + second * S) for second in (5, 8, 11))
    assert {host: [each.zone for each in held] for host, held in before.items()} == {
        A: [LEFT],
        B: [BELOW],
        C: [ABOVE],
    }
    assert [(each.zone, each.version) for each in during[A]] == [(LEFT, 0), (BELOW, 1)]
    assert sorted(after) == sorted((A, B))


def test_a_takeover_has_the_former_owner_its_state_and_the_end(run):
    wrong, right = read_zones(run, METADATA).takeovers
    assert (wrong.host, wrong.peer, wrong.zones, wrong.was_alive) == (A, B, (BELOW,), True)
    assert (wrong.noticed_ns, wrong.until_ns) == (ZERO + 6 * S, ZERO + 10 * S)
    assert (right.peer, right.zones, right.was_alive, right.until_ns) == (C, (ABOVE,), False, None)


def test_volume_without_an_owner_and_with_several():
    assert covered([LEFT, BELOW, ABOVE]) == (0.0, 0.0)
    assert covered([LEFT, BELOW]) == (0.375, 0.0)
    assert covered([LEFT, BELOW, ABOVE, BELOW, RIGHT]) == (0.0, 0.75)
    assert covered([]) == (1.0, 0.0)


def test_periods_without_a_unique_owner_are_reported(run):
    shared, dead = unsettled(read_zones(run, METADATA).volumes(ZERO))
    assert (shared.since_ns, shared.until_ns, shared.without, shared.several) == (
        ZERO + 7 * S,
        ZERO + 10 * S,
        0.0,
        0.375,
    )
    assert (dead.since_ns, dead.until_ns, dead.without, dead.several) == (
        ZERO + 11 * S,
        ZERO + 12 * S,
        0.375,
        0.0,
    )


def test_the_section_counts_zones_around_each_fault_and_lists_takeovers(run):
    (section,) = report(analysed(), run)
    assert "r2, r3 do not reach" in section.words[0] or "r2 does not reach" in section.words[0]
    assert "In 2\u00a0takeovers the zones of 2\u00a0nodes were taken over; in 1 of them" in section.words[1]
    assert "38\u00a0% of the space had no owner" in section.words[2]
    texts = [[cell.text for cell in row] for row in section.tables[0].table.rows]
    assert [row[1:4] for row in texts] == [[A, B, "alive, unreachable"], [A, C, "failed"]]


def test_a_run_without_logs_has_no_section(tmp_path):
    assert report(analysed(), RunDirectory(tmp_path)) == ()


def test_the_reading_names_existing_messages():
    named = (*READING.carries, *READING.visits, *READING.ranks, *READING.colours, *READING.routed)
    assert [name for name in named if name not in CODEC.by_name] == []
    assert not {"CLAIM", "REPORT", "RECOVER", "RECOVER_AT", "HANDED"} & set(READING.ranks)
