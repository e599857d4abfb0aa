"""Changes are applied at their times and recorded."""

import asyncio

import pytest

from experiments.planned.changes import (
    LinkChange,
    LinkDirectionName,
    LinkState,
    ProcessAction,
    ProcessChange,
)
from testbed.errors import TestbedError
from testbed.faults.application import LATE_NS, AppliedChange, Change, apply_changes, apply_concurrently
from testbed.links.emulator import Applied
from topologies.link_parameters import LinkParameters

ZERO_NS = 1_700_000_000_000_000_000
CUT = LinkChange(19_000_000, "cut", "r2-r3", LinkDirectionName.FORWARD, LinkState.BLACKHOLE, LinkParameters())
KILL = ProcessChange(20_500_000, "end of it", "r2/proxy-0", ProcessAction.KILL)
MANY = 5


class Clock:
    """A clock that advances only during sleeps and work."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_ns = ZERO_NS
        monkeypatch.setattr(asyncio, "sleep", self._sleep)

    async def _sleep(self, seconds: float) -> None:
        self.now_ns += round(seconds * 1e9)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def carried(clock: Clock, changes: list[Change], takes_ns: int = 0, error: str = "") -> list[AppliedChange]:
    records: list[AppliedChange] = []

    async def apply(change: Change) -> Applied:
        if error and change is changes[0]:
            raise TestbedError(error)
        clock.now_ns += takes_ns
        return Applied(clock.now_ns - takes_ns, clock.now_ns)

    asyncio.run(
        apply_changes(
            list(enumerate(changes)),
            zero_ns=ZERO_NS,
            apply=apply,
            record=records.append,
            now_ns=lambda: clock.now_ns,
        )
    )
    return records


def test_a_late_change_is_applied_and_recorded_as_late(clock: Clock) -> None:
    clock.now_ns = ZERO_NS + 20_500_000_000 + 2 * LATE_NS
    [record] = carried(clock, [KILL])
    assert record.applied_ns == clock.now_ns
    assert record.problem == "fault end of it changed process r2/proxy-0 200 ms late"


def test_a_failed_change_is_recorded_and_the_next_one_applied(clock: Clock) -> None:
    failed, done = carried(clock, [CUT, KILL], error="the relay is gone")
    assert failed.applied_ns is None
    assert failed.problem == "fault cut could not change link r2-r3 forward: the relay is gone"
    assert done.applied_ns == done.requested_ns


def test_links_change_first_and_changes_of_a_process_keep_their_order() -> None:
    again = ProcessChange(KILL.at_us, "again", KILL.process, ProcessAction.RESTART)
    other = ProcessChange(KILL.at_us, "other", "r2/proxy-1", ProcessAction.KILL)
    changes = [KILL, again, CUT, other]
    happened: list[tuple[str, str]] = []

    async def apply(change: Change) -> Applied:
        happened.append(("begun", change.fault))
        answered = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(answered.set_result, None)
        await answered
        happened.append(("done", change.fault))
        return Applied(0, 0)

    done = asyncio.run(apply_concurrently(list(enumerate(changes)), 0, apply))
    assert happened[:2] == [("begun", "cut"), ("done", "cut")]
    assert [what for what in happened if what[1] in {"end of it", "again"}] == [
        ("begun", "end of it"), ("done", "end of it"), ("begun", "again"), ("done", "again")
    ]  # fmt: skip
    assert happened.index(("begun", "other")) < happened.index(("done", "end of it"))
    assert [carried.change for carried in done] == changes


def test_records_in_run_json_name_link_or_process(clock: Clock) -> None:
    cut, kill = (record.as_message() for record in carried(clock, [CUT, KILL]))
    assert cut == {
        "index": 0,
        "fault": "cut",
        "link": "r2-r3",
        "direction": "forward",
        "state": "blackhole",
        "requested_ns": ZERO_NS + 19_000_000_000,
        "applied_ns": ZERO_NS + 19_000_000_000,
    }
    assert (kill["process"], kill["action"]) == ("r2/proxy-0", "kill")
