"""Faults on disks of processes: their beginnings, and the faults that end them."""

from pydantic import TypeAdapter

from experiments.faults.fault import ExperimentFault
from experiments.faults.kinds import Faults
from experiments.planned.changes import ProcessAction
from experiments.planned.effects import ending
from testbed.faults.timeline import process_changes

FILL, UNFILL = ProcessAction.FILL, ProcessAction.UNFILL
DISK = "r0/server-0"
FULL = {"name": "full", "at": "5s", "fill": DISK}
S = 1_000_000


def faults(*given: dict[str, str]) -> tuple[ExperimentFault, ...]:
    return TypeAdapter(Faults).validate_python(given)


def changes(*given: dict[str, str]) -> list[tuple[float, str, ProcessAction, str | None]]:
    found = process_changes(faults(*given), 60 * S)
    return [(change.at_us / S, change.fault, change.action, change.rule) for change in found if change.rule]


def test_a_fill_ends_after_its_time_or_by_a_restore_or_not_at_all():
    assert changes({**FULL, "for": "4s"}) == [(5, "full", FILL, "full"), (9, "full", UNFILL, "full")]
    room = {"name": "room", "at": "8s", "restore": "full"}
    assert changes(FULL, room) == [(5, "full", FILL, "full"), (8, "room", UNFILL, "full")]
    assert changes({**FULL, "for": "2h"}) == changes(FULL) == [(5, "full", FILL, "full")]


def test_each_of_several_fills_ends_separately():
    again = {"name": "again", "at": "6s", "fill": DISK, "for": "1s"}
    assert changes({**FULL, "for": "4s"}, again) == [
        (5, "full", FILL, "full"),
        (6, "again", FILL, "again"),
        (7, "again", UNFILL, "again"),
        (9, "full", UNFILL, "full"),
    ]


def test_a_replace_of_the_process_ends_a_fill_and_a_restart_does_not():
    later = [{"name": "end", "at": "6s", "kill": DISK}, {"name": "new", "at": "7s", "replace": DISK}]
    assert changes(FULL, *later) == [(5, "full", FILL, "full"), (7, "new", UNFILL, "full")]
    other = {**later[1], "replace": "r0/server-1"}
    restart = {"name": "again", "at": "7s", "restart": DISK}
    assert changes(FULL, other) == changes(FULL, later[0], restart) == changes(FULL)
    assert ending(faults(FULL)[0], faults(FULL, *later))[0] == 7 * S


def test_a_slow_disk_has_its_delay_and_ends_like_a_full_disk() -> None:
    slow = {"name": "slow", "at": "5s", "slow-disk": DISK, "sync": "70ms"}
    new = {"name": "new", "at": "8s", "replace": DISK}
    begun, over = process_changes(faults({**slow, "for": "4s"}, FULL), 60 * S)[0:3:2]
    assert (begun.action, begun.slower_us, begun.at_us) == (ProcessAction.SLOW_DISK, 70_000, 5 * S)
    assert (over.action, over.slower_us, over.at_us) == (ProcessAction.UNSLOW_DISK, None, 9 * S)
    assert [change.at_us for change in process_changes(faults(slow, new), 60 * S) if change.rule] == [
        5 * S,
        8 * S,
    ]


def test_a_wrong_clock_has_its_error_and_survives_a_replace() -> None:
    wrong = {"name": "wrong", "at": "5s", "clock": DISK, "offset": "-1500ms", "drift": "20ppm"}
    (begun,) = process_changes(faults(wrong, {"name": "new", "at": "8s", "replace": DISK}), 60 * S)[:1]
    assert (begun.action, begun.offset_us, begun.drift_ppm) == (ProcessAction.CLOCK, -1_500_000, 20)
    assert faults(wrong)[0].target == f"{DISK} by -1500ms 20ppm"
    assert ending(faults(wrong)[0], faults(wrong, {"name": "new", "at": "8s", "replace": DISK}))[0] is None
    over = process_changes(faults(wrong, {"name": "right", "at": "9s", "restore": "wrong"}), 60 * S)[-1]
    assert (over.action, over.at_us, over.fault) == (ProcessAction.UNCLOCK, 9 * S, "right")
