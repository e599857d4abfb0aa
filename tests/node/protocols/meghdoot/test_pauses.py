"""Peers that are paused and resumed: meanwhile others took over their zones without their knowledge."""

import pytest

from node.core import machine as m
from node.core.deliveries import RecordKind
from node.core.specification import PlannedSubscription
from tests.node.protocols.meghdoot.societies import Society


class Stopped:
    """A paused machine: its inputs and timers wait until it resumes."""

    def __init__(self, machine):
        self.machine, self.waiting = machine, []

    def handle(self, given, now_us):
        self.waiting.append(given)
        return []

    def __getattr__(self, name):
        return getattr(self.machine, name)


def stop(society, name):
    flat = society.network.nodes[society.addresses[name]]
    flat.machine = Stopped(flat.machine)


def go_on(society, name, do):
    """Resume: execute due timers first, then an action, then the waiting inputs."""
    flat = society.network.nodes[society.addresses[name]]
    waiting, flat.machine = flat.machine.waiting, flat.machine.machine
    for given in [each for each in waiting if isinstance(each, m.TimerFired)]:
        society.network.give(flat.address, given)
    society.network.act(society.addresses[name], do)
    for given in [each for each in waiting if not isinstance(each, m.TimerFired)]:
        society.network.give(flat.address, given)


def values_first_seen_in(zone):
    """Return the values of an event that the zone, which contains its point, sees first; or None."""
    sides = list(zip(zone.low, zone.high, strict=True))
    common = [
        (max(low, other_low), min(high, other_high))
        for (low, high), (other_low, other_high) in zip(sides[::2], sides[1::2], strict=True)
    ]
    return [50 * (low + high) for low, high in common] if all(low < high for low, high in common) else None


@pytest.mark.slow
def test_subscriptions_at_the_node_that_took_over_a_zone_count_when_its_owner_resumes():
    """Publish at once, into the peer's own zone, before it has received any message."""
    society = Society(12, seed=3, rate_per_s=1, run_us=5_000_000)
    values_of = {
        name: values
        for name, node in society.nodes().items()
        if name != "r0/subscriber-0" and len(node.can.zones) == 1
        if (values := values_first_seen_in(node.can.zones[0])) is not None
    }
    owner, values = sorted(values_of.items())[-1]
    asked = PlannedSubscription(0, 99, True, tuple((value, value) for value in values))
    stop(society, owner)
    society.run(8_000_000)
    here = society.addresses["r0/subscriber-0"]
    society.network.act(here, lambda node: node.broker.subscriber.subscribe(asked))
    society.run(2_000_000)
    told = [(each["number"], each["kind"]) for _, each in society.measured("r0/subscriber-0", "_interest")]
    assert (99, RecordKind.SUBSCRIBED) in told
    published = []
    go_on(society, owner, lambda node: published.append(node.publish(77, values, 16)))
    society.run(15_000_000)
    society.finish()
    came = society.recorded("r0/subscriber-0", RecordKind.DELIVERED)
    assert [each.first_seq for _, each in came if each.stream == 77] == published
    assert society.silent()


def test_repeated_processor_shortage_does_not_raise_doubts_each_time():
    """Check that doubts do not make the peer later by resent events; other peers already wait longer for
    it.
    """
    society = Society(8, rate_per_s=1)
    name = "r0/subscriber-0"
    for _ in range(4):
        stop(society, name)
        society.run(1_300_000)
        go_on(society, name, lambda node: None)
        society.run(1_000_000)
    assert [log.event for _, who, log in society.logs if who == name].count("woke") == 1
    society.finish()
    assert society.judged()[:3] == (0, 0, 0)
