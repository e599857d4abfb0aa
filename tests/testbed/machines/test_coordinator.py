"""The coordinator, with machines that the test plays."""

import queue
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from experiments.declared import Contract
from testbed.machines import coordinator as conductor_module
from testbed.machines.coordinator import Coordinator
from testbed.machines.supervisor_client import ClockReadings, Events

S = 1_000_000_000
PLACES = ("network", "probed", "ready", "drained", "finished", "measured")


class Played:
    """A machine that follows orders at once, and whose clock is `ahead_ns` ahead."""

    def __init__(
        self, name: str, events: Events, *, ahead_ns: int = 0, misses: str = "", delivered: int = 7
    ) -> None:
        self.name = name
        self.clock = ClockReadings()
        self.orders: list[dict[str, Any]] = []
        self._events = events
        self._ahead_ns = ahead_ns
        self._misses = misses
        self._delivered = delivered
        self.waits_at = ""
        self.says_last: list[dict[str, Any]] = [{"did": "gone", "why": "switched off"}]
        self._asked = 0
        self.say(did="phase", phase="building")
        self.wait_at("network")

    def ask_time(self) -> None:
        self._asked += 1
        self.clock.asked(self._asked, self._asked * S)
        self.clock.answered(self._asked, self._asked * S + 500 + self._ahead_ns, self._asked * S + 1000)

    def order(self, message: dict[str, Any]) -> None:
        """Continue to the next place, or end if that is ordered."""
        self.orders.append(message)
        if message["do"] == "stop":
            self.say(did="ended", outcome="interrupted")
        following = dict(pairwise(PLACES))
        place = message.get("at")
        if place == self._misses:
            for message in self.says_last:
                self.say(**message)
        elif place == "measured":
            self.say(did="ended", outcome="completed")
        elif place is not None:
            if following[place] == "drained":
                self.say(did="counts", published={"0": 7}, delivered=[{"0": self._delivered}])
            self.wait_at(following[place])

    def wait_at(self, place: str) -> None:
        self.waits_at = place
        self.say(did="waits", at=place)
        self.say(did="progress", events_per_s=1, delivered=1)

    def say(self, **message: Any) -> None:
        self._events.put((self.name, message))

    @property
    def last_told(self) -> str:
        return str(self.orders[-1]["at"])

    def told(self, place: str) -> dict[str, Any]:
        return next(order for order in self.orders if order.get("at") == place)


def lead(
    events: Events, *machines: Played, follow: Callable[[dict[str, Any]], None] = lambda _: None
) -> tuple[Coordinator, list[dict[str, Any]]]:
    """Lead the machines to the end; return the messages to the follower, too."""
    followed: list[dict[str, Any]] = []

    def hear(message: dict[str, Any]) -> None:
        followed.append(message)
        follow(message)

    coordinator = Coordinator(
        {machine.name: machine for machine in machines},
        events,
        hear,
        clients={machine.name: 1 for machine in machines},
        duration_us=1,
        contract=Contract(),
    )
    coordinator.lead()
    return coordinator, [message for message in followed if message]


@pytest.fixture
def events() -> Events:
    return queue.SimpleQueue()


@pytest.fixture(autouse=True)
def _answers_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let machines of the test answer at once."""
    monkeypatch.setattr(conductor_module, "QUICK_QUESTION_PERIOD_S", 0.0)
    monkeypatch.setattr(conductor_module, "LOOK_S", 0.01)


def test_time_0_is_one_instant_by_each_machine_s_own_clock(events: Events) -> None:
    one, other = Played("h0", events), Played("h1", events, ahead_ns=3600 * S)
    _, followed = lead(events, one, other)
    ahead_ns = other.told("ready")["zero_ns"] - one.told("ready")["zero_ns"]
    assert ahead_ns == 3600 * S
    running = next(message for message in followed if message["did"] == "running")
    assert one.told("ready")["zero_ns"] == running["zero_ns"]


def test_a_lost_machine_is_no_longer_awaited(events: Events) -> None:
    one, other = Played("h0", events), Played("h1", events, misses="ready")
    coordinator, _ = lead(events, one, other)
    assert coordinator.ended == {"h0"}
    assert coordinator.lost == {"h1"}
    assert coordinator.problems == ["h1: lost for the run: switched off"]


def test_a_machine_that_breaks_ends_the_run_for_all(events: Events) -> None:
    one, other = Played("h0", events), Played("h1", events)
    events.put(("h1", {"did": "failed", "kind": "machine", "text": "no sch_netem"}))
    events.put(("h1", {"did": "ended", "outcome": "crashed"}))
    coordinator, _ = lead(events, one, other)
    assert coordinator.failed["text"] == "h1: no sch_netem"
    assert {"do": "stop", "why": "h1 failed"} in one.orders


def test_the_drain_ends_when_every_client_has_all_events(events: Events) -> None:
    one, other = Played("h0", events), Played("h1", events, delivered=6)  # of 7
    waited = False

    def follow(message: dict[str, Any]) -> None:
        nonlocal waited
        if message or waited or other.waits_at != "drained":
            return
        waited = True  # no message for a while
        assert all(machine.last_told == "ready" for machine in (one, other))
        other.say(did="counts", published={"0": 7}, delivered=[{"0": 7}])

    lead(events, one, other, follow=follow)
    assert waited
    assert one.told("drained")["drained"] is other.told("drained")["drained"] is True


@pytest.mark.parametrize(
    "nonsense",
    [
        {"did": "waits", "at": "the corner"},
        {"did": "phase", "phase": "waxing"},
        {"did": "ended"},
        {"did": "counts", "published": 7},
        {"did": "change", "fault": "cut", "requested_ns": 1},
        {"did": "failed", "text": "of a kind that it does not say"},
        {"did": "progress", "events_per_s": "many", "delivered": 1},
        {"did": "progress", "events_per_s": 10**400, "delivered": 1},
    ],
)
def test_a_machine_with_invalid_messages_is_lost_and_the_others_continue(
    events: Events, nonsense: dict[str, Any]
) -> None:
    one, other = Played("h0", events), Played("h1", events, misses="probed")
    other.says_last = [nonsense, {"did": "failed", "kind": "machine", "text": "and it goes on talking"}]
    coordinator, _ = lead(events, one, other)
    assert coordinator.ended == {"h0"}
    assert coordinator.lost == {"h1"}
    assert coordinator.failed == {}


TERMINAL = "\x1b]0;title\x07line one\r\n\x1b[2Jline two\x9b1m \u202eover"
PRINTABLE = "?]0;title?line one ?[2Jline two?1m ?over"


@pytest.mark.parametrize(
    ("message", "followed_text"),
    [
        ({"did": "problem", "text": TERMINAL}, f"h1: {PRINTABLE}"),
        ({"did": "broken", "why": TERMINAL}, f"{PRINTABLE}; the run continues, reconnecting"),
        ({"did": "gone", "why": TERMINAL}, f"h1: lost for the run: {PRINTABLE}"),
        ({"did": "lost", "why": TERMINAL}, f"h1: lost for the run: {PRINTABLE}"),
    ],
    ids=["problem", "broken", "gone", "lost"],
)
def test_texts_from_machines_are_one_printable_line(
    events: Events, message: dict[str, Any], followed_text: str
) -> None:
    one, other = Played("h0", events), Played("h1", events)
    events.put(("h1", message))
    coordinator, followed = lead(events, one, other)
    assert followed_text in [each["text"] for each in followed if each["did"] == "problem"]
    assert TERMINAL not in " ".join(coordinator.problems)


def test_ctrl_c_stops_all_once(events: Events) -> None:
    one, other = Played("h0", events), Played("h1", events)
    events.put(("", {"do": "stop"}))
    events.put(("", {"do": "stop"}))
    coordinator, _ = lead(events, one, other)
    assert [order for order in one.orders if order["do"] == "stop"] == [
        {"do": "stop", "why": "stopped by the user before its time"}
    ]
    assert coordinator.ended == {"h0", "h1"}
