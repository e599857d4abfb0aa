"""Separations of processes of a region: the resulting changes, and refused ones."""

import pytest

from experiments.planned.changes import ProcessAction, ProcessChange
from experiments.planned.plan import Plan
from tests.plans import plan_named
from topologies.errors import InputError

SEPARATE, REJOIN = ProcessAction.SEPARATE, ProcessAction.REJOIN
PROXY, ONE, TWO = "r0/proxy-0", "r0/client-0", "r0/client-1"
S = 1_000_000


def planned(*faults: str) -> Plan:
    return plan_named("link-failure", f"faults=[{', '.join(faults)}]", "expect=[]")


def changes(*faults: str) -> list[tuple[float, str, str, ProcessAction, tuple[str, ...]]]:
    return [
        (change.at_us / S, change.fault, change.process, change.action, change.peers)
        for change in planned(*faults).changes
        if isinstance(change, ProcessChange)
    ]


def test_connections_with_the_named_processes_are_reset_once():
    some = f"{{name: some, at: 5s, reset: {PROXY}, from: [r1/proxy-0]}}"
    resets = (f"{{name: all, at: 3s, reset: {PROXY}}}", some)
    assert changes(*resets) == [
        (3, "all", PROXY, ProcessAction.RESET, ()),
        (5, "some", PROXY, ProcessAction.RESET, ("r1/proxy-0",)),
    ]
    assert [fault.target for fault in planned(*resets).faults] == [PROXY, f"{PROXY} from r1/proxy-0"]
    with pytest.raises(InputError, match="there is no process r1/proxy-9"):
        planned(f"{{at: 5s, reset: {PROXY}, from: [r1/proxy-9]}}")
    with pytest.raises(InputError, match="is the process itself"):
        planned(f"{{at: 5s, reset: {PROXY}, from: [{PROXY}]}}")


def test_each_end_blocks_its_packets_and_unblocks_them_at_the_end():
    half = f"{{name: half, at: 5s, separate: {PROXY}, from: [{ONE}, {TWO}], for: 4s}}"
    assert changes(half) == [
        (5, "half", PROXY, SEPARATE, (ONE, TWO)),
        (5, "half", ONE, SEPARATE, (PROXY,)),
        (5, "half", TWO, SEPARATE, (PROXY,)),
        (9, "half", PROXY, REJOIN, (ONE, TWO)),
        (9, "half", ONE, REJOIN, (PROXY,)),
        (9, "half", TWO, REJOIN, (PROXY,)),
    ]
    (fault,) = planned(half).faults
    assert (fault.target, fault.until_us) == (f"{PROXY} from {ONE} {TWO}", 9 * S)


def test_a_separation_may_affect_one_direction():
    forward = f"{{name: mute, at: 5s, separate: {PROXY}, from: [{ONE}], direction: forward}}"
    assert changes(forward) == [(5, "mute", PROXY, SEPARATE, (ONE,))]
    backward = f"{{name: deaf, at: 5s, separate: {PROXY}, from: [{ONE}], direction: backward}}"
    assert changes(backward) == [(5, "deaf", ONE, SEPARATE, (PROXY,))]


def test_a_restore_by_name_ends_a_separation_and_nothing_changes_after_the_duration():
    for_good = f"{{name: half, at: 5s, separate: {PROXY}, from: [{ONE}], direction: forward}}"
    assert changes(for_good, "{name: back, at: 8s, restore: half}") == [
        (5, "half", PROXY, SEPARATE, (ONE,)),
        (8, "back", PROXY, REJOIN, (ONE,)),
    ]
    long = f"{{name: half, at: 5s, separate: {PROXY}, from: [{ONE}], direction: forward, for: 2h}}"
    assert changes(long) == changes(for_good)


@pytest.mark.parametrize(
    ("others", "said"),
    [
        ("r0/client-7", "faults.0.from.0: there is no process r0/client-7: did you mean r0/client-"),
        ("r1/client-0", "faults.0.from.0: is not in r0: cut links between regions instead"),
        (PROXY, "faults.0.from.0: is the process itself"),
    ],
)
def test_only_processes_of_the_same_region_can_be_separated(others, said):
    with pytest.raises(InputError, match=said):
        planned(f"{{at: 5s, separate: {PROXY}, from: [{others}]}}")


def test_a_block_is_a_rule_at_each_sending_host_and_ends_by_name():
    others = "from: [r1/proxy-0, r2/proxy-0]"
    wall = f"{{name: wall, at: 5s, block: r0/proxy-0, {others}, port: 7000, new: true, for: 4s}}"
    found = [each for each in planned(wall).changes if isinstance(each, ProcessChange)]
    assert [(each.at_us / S, each.action, each.process, each.peers) for each in found] == [
        (5, ProcessAction.BLOCK, "r0/proxy-0", ("r1/proxy-0", "r2/proxy-0")),
        (5, ProcessAction.BLOCK, "r1/proxy-0", ("r0/proxy-0",)),
        (5, ProcessAction.BLOCK, "r2/proxy-0", ("r0/proxy-0",)),
        (9, ProcessAction.UNBLOCK, "r0/proxy-0", ("r1/proxy-0", "r2/proxy-0")),
        (9, ProcessAction.UNBLOCK, "r1/proxy-0", ("r0/proxy-0",)),
        (9, ProcessAction.UNBLOCK, "r2/proxy-0", ("r0/proxy-0",)),
    ]
    assert {(each.rule, each.port, each.new, each.refuse) for each in found} == {("wall", 7000, True, False)}
    mute = "{name: mute, at: 5s, block: r0/proxy-0, from: [r1/proxy-0], direction: forward}"
    restored = planned(mute, "{name: open, at: 8s, restore: mute}")
    assert [(each.at_us / S, each.fault, each.rule, each.process) for each in restored.changes] == [
        (5, "mute", "mute", "r0/proxy-0"),
        (8, "open", "mute", "r0/proxy-0"),
    ]
    assert [fault.until_us for fault in restored.faults] == [8 * S, None]


@pytest.mark.parametrize(
    ("others", "said"),
    [
        ("[r1/proxy-9]", "there is no process r1/proxy-9"),
        ("[r0/proxy-0]", "is the process itself"),
        ("[]", "from"),
    ],
)
def test_the_peers_of_a_block_must_exist(others, said):
    with pytest.raises(InputError, match=said):
        planned(f"{{at: 5s, block: r0/proxy-0, from: {others}}}")
