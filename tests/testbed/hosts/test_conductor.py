"""The conductor with machines that are played by the test."""

import queue
from itertools import pairwise
from typing import Any

import pytest

from testbed.hosts.clock_readings import ClockReadings
from testbed.hosts.conductor import LEAD_NS, Conductor
from testbed.hosts.peer import Events

S = 1_000_000_000
PLACES = ("network", "probed", "ready", "drained", "finished", "measured")


class Played:
    """A machine that does as it is told, in one go, and whose clock is `ahead_ns` of ours."""

    def __init__(self, name: str, events: Events, *, ahead_ns: int = 0, misses: str = "") -> None:
        self.name = name
        self.clock = ClockReadings()
        self.orders: list[dict[str, Any]] = []
        self._events = events
        self._ahead_ns = ahead_ns
        self._misses = misses
        self._asked = 0
        self.say(did="phase", phase="building")
        self.wait_at("network")

    def ask_time(self) -> None:
        self._asked += 1
        self.clock.asked(self._asked, self._asked * S)
        self.clock.answered(self._asked, self._asked * S + 500 + self._ahead_ns, self._asked * S + 1000)

    def order(self, message: dict[str, Any]) -> None:
        """Go on to the next place, or die where it is told to."""
        self.orders.append(message)
        if message["do"] == "stop":
            self.say(did="ended", outcome="interrupted")
        following = dict(pairwise(PLACES))
        place = message.get("at")
        if place == self._misses:
            self.say(did="gone", why="switched off")
        elif place == "measured":
            self.say(did="ended", outcome="completed")
        elif place is not None:
            if following[place] == "drained":
                self.say(did="counts", published={"0": 7}, delivered=[{"0": 7}])
            self.wait_at(following[place])

    def wait_at(self, place: str) -> None:
        self.say(did="waits", at=place)

    def say(self, **message: Any) -> None:
        self._events.put((self.name, message))

    def told(self, place: str) -> dict[str, Any]:
        return next(order for order in self.orders if order.get("at") == place)


def lead(events: Events, *machines: Played) -> tuple[Conductor, list[dict[str, Any]]]:
    """Lead them to the end; also what the follower was told."""
    followed: list[dict[str, Any]] = []
    conductor = Conductor(
        machines,  # type: ignore[arg-type]
        events,
        followed.append,
        clients={machine.name: 1 for machine in machines},
        duration_us=1,
    )
    conductor.lead()
    return conductor, [message for message in followed if message]


@pytest.fixture
def events() -> Events:
    return queue.SimpleQueue()


def test_machines_go_through_all_places_together(events: Events) -> None:
    one, other = Played("h0", events), Played("h1", events)
    conductor, _ = lead(events, one, other)
    for machine in (one, other):
        assert tuple(order["at"] for order in machine.orders) == PLACES
    assert conductor.ended == {"h0", "h1"}


def test_time_0_is_one_instant_by_each_machine_s_own_clock(events: Events) -> None:
    one, other = Played("h0", events), Played("h1", events, ahead_ns=3600 * S)
    _, followed = lead(events, one, other)
    ahead_ns = other.told("ready")["zero_ns"] - one.told("ready")["zero_ns"]
    assert ahead_ns == 3600 * S
    running = next(message for message in followed if message["did"] == "running")
    assert one.told("ready")["zero_ns"] == running["zero_ns"]
    assert LEAD_NS > 0


def test_a_machine_that_is_lost_is_waited_for_no_longer(events: Events) -> None:
    one, other = Played("h0", events), Played("h1", events, misses="ready")
    conductor, _ = lead(events, one, other)
    assert conductor.ended == {"h0"}
    assert conductor.lost == {"h1"}
    assert conductor.problems == ["h1: lost for the run: switched off"]


def test_a_machine_that_breaks_ends_the_run_for_all(events: Events) -> None:
    one, other = Played("h0", events), Played("h1", events)
    events.put(("h1", {"did": "failed", "kind": "machine", "text": "no sch_netem"}))
    events.put(("h1", {"did": "ended", "outcome": "crashed"}))
    conductor, _ = lead(events, one, other)
    assert conductor.failed["text"] == "h1: no sch_netem"
    assert {"do": "stop", "why": "h1 broke"} in one.orders


def test_the_drain_is_over_when_every_client_everywhere_has_everything(events: Events) -> None:
    one, other = Played("h0", events), Played("h1", events)
    more = [("h0", {"did": "counts", "published": {"0": 9}, "delivered": [{"0": 9}]})]
    behind = {"did": "counts", "published": {}, "delivered": [{"0": 8}]}
    caught_up = {"did": "counts", "published": {}, "delivered": [{"0": 9}]}
    held = other.order

    def order(message: dict[str, Any]) -> None:
        held(message)
        if message.get("at") == "ready":
            for each in (*more, ("h1", behind)):
                events.put(each)
            events.put(("h1", {"did": "log", "name": "x", "record": {}}))
            events.put(("h1", caught_up))

    other.order = order  # type: ignore[method-assign]
    _, followed = lead(events, one, other)
    assert other.told("drained")["drained"] is True
    assert [message["did"] for message in followed].index("log") >= 0


def test_ctrl_c_stops_all_once(events: Events) -> None:
    one, other = Played("h0", events), Played("h1", events)
    events.put(("", {"do": "stop"}))
    events.put(("", {"do": "stop"}))
    conductor, _ = lead(events, one, other)
    assert [order for order in one.orders if order["do"] == "stop"] == [
        {"do": "stop", "why": "stopped by the user before its time"}
    ]
    assert conductor.ended == {"h0", "h1"}
