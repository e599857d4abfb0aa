"""Scribe's trees from the nodes' logs, and the report section."""

import json
from ipaddress import IPv4Address

import pytest

from analysis.pages.report.run_reader import AnalysedRun
from analysis.systems.catalog import sections
from analysis.systems.scribe.report import report
from analysis.systems.scribe.trees import read_trees
from analysis.timelines.run_metadata import read_metadata
from experiments.records.rundir import RunDirectory
from node.protocols.scribe.messages import topic_key
from tests.analysis.timelines.world import CUT, RESTORED, ZERO, S, run_record

OVERRIDES = (
    "system=scribe", "parameters={}", "paper=null", "expect=[]", "roles={publisher: 1, member: 2}",
    "workload={kind: topics, event_size: 100B, rate: 10/s, topics: 2, subscriptions: {members: 6}}",
)  # fmt: skip
RECORD = run_record(*OVERRIDES)
METADATA = read_metadata(RECORD)
REGIONS = {host.name: host.region for host in METADATA.hosts.values()}
ROOT, CHILD, GRANDCHILD, OTHER = "r0-member-0", "r2-member-0", "r3-member-0", "r1-member-0"


def write(run: RunDirectory, host: str, *lines: tuple[int, str, str | None]) -> None:
    """Write lines of a node's log about the first topic: time, event, and peer."""
    run.log(host).parent.mkdir(parents=True, exist_ok=True)
    with run.log(host).open("a") as log:
        for t_ns, event, peer in lines:
            record = {"t_ns": ZERO + t_ns, "event": event, "topic": f"{topic_key(0):032x}"}
            log.write(json.dumps(record | ({"peer": number(peer)} if peer else {})) + "\n")


def number(host: str) -> int:
    return int(IPv4Address(METADATA.hosts[host].address))


@pytest.fixture
def run(tmp_path) -> RunDirectory:
    """Return a run: the grandchild changes its parent in the cut; the child is reached via a relay for a
    while.
    """
    run = RunDirectory(tmp_path)
    write(run, ROOT, (S, "became_root", None))
    write(run, CHILD, (2 * S, "adopted", ROOT))
    write(
        run, GRANDCHILD, (2 * S, "adopted", CHILD), (6 * S, "parent_silent", CHILD), (7 * S, "adopted", OTHER)
    )
    write(run, OTHER, (3 * S, "adopted", ROOT), (13 * S, "left", ROOT))
    with run.log(ROOT).open("a") as log:
        for t_ns, fields in (
            (6 * S, {"event": "relay", "peer": number(CHILD), "relay": number(OTHER)}),
            (10 * S, {"event": "no_relay", "peer": number(CHILD)}),
        ):
            log.write(json.dumps({"t_ns": ZERO + t_ns, **fields}) + "\n")
    return run


def test_a_tree_follows_from_the_logs_up_to_its_time(run):
    trees = read_trees(run, METADATA)
    before, during = (trees.at(ZERO + t_ns)[0] for t_ns in (CUT, RESTORED))
    assert before.parents == {CHILD: ROOT, GRANDCHILD: CHILD, OTHER: ROOT}
    assert (before.roots, before.depth, before.crossing(REGIONS)) == ((ROOT,), 2, 3)
    assert before.children == {ROOT: 2, CHILD: 1}
    assert during.parents == {CHILD: ROOT, GRANDCHILD: OTHER, OTHER: ROOT}
    assert during.relays == {CHILD: OTHER}
    assert trees.at(ZERO + 14 * S)[0].relays == {}
    assert OTHER not in trees.at(ZERO + 14 * S)[0].parents


def test_a_node_between_two_parents_has_none_and_killed_nodes_are_in_no_tree(run):
    trees = read_trees(run, METADATA)
    assert trees.at(ZERO + 6_500_000_000)[0].parents == {CHILD: ROOT, OTHER: ROOT}
    assert trees.at(ZERO + CUT, frozenset({ROOT}))[0].roots == ()


def test_the_depth_of_a_loop_is_finite(run):
    write(run, ROOT, (4 * S, "adopted", GRANDCHILD))
    assert read_trees(run, METADATA).at(ZERO + CUT)[0].depth == 64


def analysed(summary=None) -> AnalysedRun:
    nothing: dict = dict.fromkeys(("throughput", "latency", "recovery", "fidelity", "missing"), ())
    return AnalysedRun(run=RECORD, summary=summary or {}, **nothing)


def test_the_section_has_the_trees_at_each_time_and_counts_what_changed(run):
    (section,) = report(analysed(), run)
    assert "3\u00a0edges, 3 between regions, 1 of them new, 1 over a third node" in section.words[0]
    trees, children = (each.table for each in section.tables)
    assert len(trees.rows) == 3
    texts = {row[0].text: [cell.text for cell in row[1:]] for row in children.rows}
    assert texts[ROOT] == ["1", "2", "1", "2", "1", "1"]
    assert texts["r1-publisher-0"] == ["0"] * 6


def test_the_cost_of_trees_is_reported_if_packets_show_it(run):
    wan = {"messages": 40, "copies_mean": 2.5, "copies_max": 6, "stress_max": 20}
    (section,) = report(analysed({"wan": wan}), run)
    assert "2.5 times on average, 6\u00a0times at most" in section.words[1]


def test_a_run_without_logs_has_no_section(tmp_path):
    assert report(analysed(), RunDirectory(tmp_path)) == ()


def test_a_system_without_sections_adds_none(tmp_path):
    nothing: dict = dict.fromkeys(("throughput", "latency", "recovery", "fidelity", "missing"), ())
    sprinkler = AnalysedRun(run=run_record(), summary={}, **nothing)
    assert sections(sprinkler, RunDirectory(tmp_path)) == ()
