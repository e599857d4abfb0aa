"""Traffic on links between regions: messages, and copies of the same event."""

import pyarrow as pa
import pytest

from analysis.schemas import MESSAGES
from analysis.timelines import schemas
from analysis.timelines.links import wan
from tests.analysis.timelines.recovering import test_host_paths as trees
from tests.analysis.timelines.world import ZERO, facts_of

FORWARD = ("r2-r3", "forward")


def copies(*events):
    found = wan.copies_over_links(trees.table(events), trees.METADATA).to_pylist()
    return {(row["link"], row["direction"]): (row["copies"], row["distinct"], row["most"]) for row in found}


def test_each_edge_of_a_tree_over_a_link_is_a_copy():
    first = [trees.event(host, "r2-proxy-0", 1, ZERO) for host in ("r3-proxy-0", "r3-client-0")]
    second = trees.event("r3-proxy-0", "r2-proxy-0", 11, ZERO)
    within = trees.event("r3-client-1", "r3-proxy-0", 1, ZERO)
    assert copies(*first, second, within) == {FORWARD: (30, 20, 2)}


def test_partly_overlapping_batches_count_as_copies():
    events = [trees.event("r3-proxy-0", "r2-proxy-0", first, ZERO) for first in (1, 6)]
    assert copies(*events) == {FORWARD: (20, 15, 2)}


def test_relayed_events_cross_both_links():
    passed = trees.event("r0-proxy-0", "r2-proxy-0", 1, ZERO) | {"kind": "passed"}
    arrived = trees.event("r3-proxy-0", "r2-proxy-0", 1, ZERO, via="r0-proxy-0")
    assert copies(passed, arrived) == {("r0-r2", "backward"): (10, 10, 1), ("r0-r3", "forward"): (10, 10, 1)}


def test_messages_of_all_kinds_count_where_they_came():
    rows = [
        trees.message("r3-proxy-0", "in", "r2-proxy-0", 1),
        trees.message("r3-proxy-0", "in", "r2-client-0", 2, type="OTHER", stream=None),
        trees.message("r3-proxy-0", "in", "r3-client-0", 3),
        trees.message("r3-proxy-0", "out", "r2-proxy-0", 4),
    ]
    messages = pa.Table.from_pylist(rows, schema=MESSAGES)
    metadata = facts_of()
    (row,) = wan.messages_over_links(messages, metadata.hosts["r3-proxy-0"], metadata).to_pylist()
    assert row == {"link": "r2-r3", "direction": "forward", "messages": 2, "bytes": 200}


def test_the_headline_has_the_mean_over_links_and_the_most_of_any():
    messages = pa.table(
        [["a", "b", "a"], ["forward"] * 3, [10, 7, 5], [100, 70, 50]], schema=schemas.WAN_MESSAGES
    )
    held = pa.table(
        [["a", "a"], ["forward"] * 2, [0, 1], [30, 10], [10, 10], [3, 1]], schema=schemas.WAN_COPIES
    )
    found = wan.headline(wan.table(messages, held), None)
    assert found == {
        "messages": 22, "bytes": None, "stress_max": 15, "copies_mean": 2.0, "copies_max": 3,
    }  # fmt: skip


def test_without_packets_costs_are_unknown():
    nothing = wan.table(schemas.WAN_MESSAGES.empty_table(), schemas.WAN_COPIES.empty_table())
    assert wan.headline(nothing, None)["messages"] is None


@pytest.mark.parametrize(("firsts", "most"), [((1,), 1), ((1, 1, 5), 3), ((1, 11, 21), 1)])
def test_most_copies_of_one_event(firsts, most):
    batches = trees.table(trees.event("r3-proxy-0", "r2-proxy-0", first, ZERO) for first in firsts)
    assert wan.copies_over_links(batches, trees.METADATA).to_pylist()[0]["most"] == most
