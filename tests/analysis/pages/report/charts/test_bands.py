"""Bands say when the network was disturbed: from a fault's applied change until whatever change undid it."""

from dataclasses import replace
from typing import Any

import pytest

from analysis.pages.report.charts.bands import bands
from analysis.pages.report.run_reader import AnalysedRun
from experiments.planned.changes import (
    LinkChange,
    LinkDirectionName,
    LinkState,
    ProcessAction,
    ProcessChange,
)
from experiments.planned.plan import FaultPlan
from experiments.records.observations import ChangeRecord
from experiments.records.run_record import RunRecord, Times
from tests.analysis.pages.report.report_scenario import DEFAULT, ZERO_NS
from tests.analysis.pages.report.synthetic_run import make_plan
from topologies.link_parameters import LinkParameters

UP, BLACKHOLE = LinkState.UP, LinkState.BLACKHOLE
BASE = next(link.forward for link in make_plan(DEFAULT).links if link.name == "r2-r3")


def record_of(
    *changes: tuple[float, str, str, LinkState | ProcessAction, LinkParameters | None], applied: bool = False
) -> AnalysedRun:
    """Return a record whose plan has these changes, to both directions of a link or to a process."""
    made: list[LinkChange | ProcessChange] = []
    for at_s, fault, subject, what, parameters in changes:
        at_us = int(at_s * 1e6)
        if isinstance(what, ProcessAction):
            made.append(ProcessChange(at_us, fault, subject, what))
        else:
            made += [
                LinkChange(at_us, fault, subject, d, what, parameters or BASE) for d in LinkDirectionName
            ]
    faults = tuple(FaultPlan(fault, "cut", "r2-r3", 0) for fault in dict.fromkeys(c[1] for c in changes))
    plan = replace(make_plan(DEFAULT), changes=tuple(made), faults=faults)
    asked_ns = [ZERO_NS + change.at_us * 1000 for change in made]
    done = tuple(ChangeRecord(index, t_ns, t_ns + 50_000_000) for index, t_ns in enumerate(asked_ns))
    run = RunRecord(plan, times=Times(zero_ns=ZERO_NS), changes=done if applied else ())
    return AnalysedRun(run, {}, (), (), (), (), ())


def of_run(record: AnalysedRun, **fields: Any) -> AnalysedRun:
    return replace(record, run=replace(record.run, **fields))


def of_plan(record: AnalysedRun, **fields: Any) -> AnalysedRun:
    return of_run(record, plan=replace(record.plan, **fields))


def spans(record: AnalysedRun) -> list[tuple[str, float, float | None]]:
    """Fault, start and end of each band."""
    return [
        (band.fault, round(band.start_s, 3), band.end_s and round(band.end_s, 3)) for band in bands(record)
    ]


def test_a_cut_lasts_until_its_restore() -> None:
    record = record_of((19, "cut", "r2-r3", BLACKHOLE, None), (41, "restore", "r2-r3", UP, None))
    assert spans(record) == [("cut", 19, 41)]
    assert bands(record)[0].links == ("r2-r3",)


def test_times_are_those_at_which_changes_were_applied() -> None:
    record = record_of(
        (19, "cut", "r2-r3", BLACKHOLE, None), (41, "restore", "r2-r3", UP, None), applied=True
    )
    assert spans(record) == [("cut", 19.05, 41.05)]


def test_a_fault_that_nothing_ends_lasts_to_the_end() -> None:
    assert spans(record_of((19, "cut", "r2-r3", BLACKHOLE, None))) == [("cut", 19, None)]


def test_a_changed_shape_disturbs_and_the_configured_one_does_not() -> None:
    slow = replace(BASE, delay_us=80_000)
    record = record_of((5, "slow", "r2-r3", UP, slow), (9, "usual", "r2-r3", UP, BASE))
    assert spans(record) == [("slow", 5, 9)]


def test_a_flapping_link_has_a_band_for_each_time_it_is_down() -> None:
    record = record_of(
        (1, "flap", "r2-r3", BLACKHOLE, None),
        (2, "flap", "r2-r3", UP, None),
        (4, "flap", "r2-r3", BLACKHOLE, None),
        (5, "flap", "r2-r3", UP, None),
    )
    assert spans(record) == [("flap", 1, 2), ("flap", 4, 5)]


def test_a_partition_of_several_links_is_one_band() -> None:
    record = record_of(
        (3, "split", "r0-r2", BLACKHOLE, None),
        (3, "split", "r1-r2", BLACKHOLE, None),
        (6, "heal", "r0-r2", UP, replace(BASE, delay_us=40_000)),
        (7, "heal", "r1-r2", UP, replace(BASE, delay_us=42_000)),
    )
    assert spans(record) == [("split", 3, 7)]
    assert bands(record)[0].links == ("r0-r2", "r1-r2")


@pytest.mark.parametrize(
    ("begins", "ends"),
    [(ProcessAction.KILL, ProcessAction.RESTART), (ProcessAction.STOP, ProcessAction.CONTINUE)],
)
def test_a_process_is_disturbed_until_it_runs_again(begins: ProcessAction, ends: ProcessAction) -> None:
    record = record_of((2, "gone", "r2/proxy-0", begins, None), (8, "back", "r2/proxy-0", ends, None))
    assert spans(record) == [("gone", 2, 8)]
    assert bands(record)[0].processes == ("r2/proxy-0",)


@pytest.mark.parametrize(("ended_s", "found"), [(6, []), (30, [("cut", 19, None)])])
def test_changes_planned_after_the_end_make_no_band(ended_s: int, found: list[Any]) -> None:
    record = record_of((19, "cut", "r2-r3", BLACKHOLE, None), (41, "restore", "r2-r3", UP, None))
    times = Times(zero_ns=ZERO_NS, stopped_ns=ZERO_NS + ended_s * 10**9)
    assert spans(of_run(record, times=times)) == found


def test_a_change_that_was_never_applied_makes_no_band() -> None:
    record = record_of(
        (19, "cut", "r2-r3", BLACKHOLE, None), (41, "again", "r0-r1", BLACKHOLE, None), applied=True
    )
    happened = tuple(applied for change, applied in record.run.changes_applied if change.fault == "cut")
    assert spans(of_run(record, changes=happened)) == [("cut", 19.05, None)]


def test_a_fault_within_another_has_a_band_of_its_own() -> None:
    slow = replace(BASE, delay_us=80_000)
    record = record_of(
        (5, "slow", "r2-r3", UP, slow),
        (8, "cut", "r2-r3", BLACKHOLE, slow),
        (12, "cut", "r2-r3", UP, slow),
        (20, "slow", "r2-r3", UP, BASE),
    )
    assert spans(record) == [("slow", 5, 20), ("cut", 8, 12)]
    assert [band.links for band in bands(record)] == [("r2-r3",)] * 2
    assert [band.row for band in bands(record)] == [0, 1]  # names stand below each other


def test_faults_that_overlap_have_each_its_own_end() -> None:
    slow = replace(BASE, delay_us=80_000)
    record = record_of(
        (5, "slow", "r2-r3", UP, slow),
        (8, "cut", "r2-r3", BLACKHOLE, slow),
        (10, "slow", "r2-r3", BLACKHOLE, BASE),
        (12, "cut", "r2-r3", UP, BASE),
    )
    assert spans(record) == [("slow", 5, 10), ("cut", 8, 12)]


def test_a_link_that_flaps_while_it_is_slow_is_slow_all_the_time() -> None:
    slow = replace(BASE, delay_us=80_000)
    flaps = [(at_s, "flap", "r2-r3", BLACKHOLE if at_s % 2 else UP, slow) for at_s in (7, 8, 9, 10)]
    record = record_of((5, "slow", "r2-r3", UP, slow), *flaps, (20, "slow", "r2-r3", UP, BASE))
    assert spans(record) == [("slow", 5, 20), ("flap", 7, 8), ("flap", 9, 10)]
    assert [band.row for band in bands(record)] == [0, 1, 1]


def test_a_stopped_process_that_is_killed_has_both_bands() -> None:
    process = "r2/proxy-0"
    record = record_of(
        (2, "stop", process, ProcessAction.STOP, None),
        (4, "kill", process, ProcessAction.KILL, None),
        (8, "back", process, ProcessAction.RESTART, None),
    )
    assert spans(record) == [("stop", 2, 8), ("kill", 4, 8)]


def test_a_reset_is_a_moment_and_ends_nothing_else() -> None:
    record = record_of(
        (2, "stop", "r2/proxy-0", ProcessAction.STOP, None),
        (3, "reset", "r2/proxy-1", ProcessAction.RESET, None),
        (4, "again", "r2/proxy-0", ProcessAction.RESET, None),
        (8, "on", "r2/proxy-0", ProcessAction.CONTINUE, None),
    )
    assert spans(record) == [("stop", 2, 8), ("reset", 3, 3), ("again", 4, 4)]


def test_a_cut_of_what_is_cut_has_the_times_that_were_planned() -> None:
    record = record_of((5, "cut", "r2-r3", BLACKHOLE, None), (12, "later", "r2-r3", UP, None))
    later = FaultPlan("later", "cut", "r3-r2", 8_000_000, 12_000_000)
    cut = FaultPlan("cut", "cut", "r2-r3", 5_000_000, 10_000_000)
    record = of_plan(record, faults=(cut, later))
    assert spans(record) == [("cut", 5, 10), ("later", 8, 12)]
    assert [band.links for band in bands(record)] == [("r2-r3",)] * 2
    changes = (*record.plan.changes[:2], *(replace(each, fault="cut") for each in record.plan.changes[2:]))
    record = of_plan(record, faults=(cut, replace(later, until_us=9_000_000)), changes=changes)
    assert spans(record)[1] == ("later", 8, 9)


def test_a_full_disk_is_so_whatever_becomes_of_its_process() -> None:
    record = record_of(
        (2, "full", "r2/proxy-0", ProcessAction.FILL, None),
        (3, "end", "r2/proxy-0", ProcessAction.KILL, None),
        (4, "again", "r2/proxy-0", ProcessAction.RESTART, None),
        (6, "room", "r2/proxy-0", ProcessAction.UNFILL, None),
    )
    changes = record.plan.changes
    rules = ("full", None, None, "full")
    changes = tuple(replace(each, rule=rule) for each, rule in zip(changes, rules, strict=True))
    record = of_plan(record, changes=changes)
    assert spans(record) == [("full", 2, 6), ("end", 3, 4)]


def test_two_separations_of_one_process_end_apart_from_each_other() -> None:
    record = record_of(
        (2, "one", "r2/proxy-0", ProcessAction.SEPARATE, None),
        (3, "two", "r2/proxy-0", ProcessAction.SEPARATE, None),
        (4, "one", "r2/proxy-0", ProcessAction.REJOIN, None),
        (6, "two", "r2/proxy-0", ProcessAction.REJOIN, None),
    )
    peers = {"one": ("r2/client-0",), "two": ("r2/client-1",)}
    changes = tuple(replace(each, peers=peers[each.fault]) for each in record.plan.changes)
    record = of_plan(record, changes=changes)
    assert spans(record) == [("one", 2, 4), ("two", 3, 6)]
    assert [band.processes for band in bands(record)] == [("r2/proxy-0",)] * 2
    assert [band.links for band in bands(record)] == [()] * 2
