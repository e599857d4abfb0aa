"""Bands show disturbances: from a fault's applied change until the change that reverted it."""

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

BASE = next(link.forward for link in make_plan(DEFAULT).links if link.name == "r2-r3")
SHAPES = {
    "": BASE,
    "slow": replace(BASE, delay_us=80_000),
    "40ms": replace(BASE, delay_us=40_000),
    "35ms": replace(BASE, delay_us=35_000),
}


def record_of(text: str, *, applied: bool = False) -> AnalysedRun:
    """Return a record whose plan has changes, to both directions of a link or to a process.

    text: `TIME FAULT LINK STATE [SHAPE]` or `TIME FAULT PROCESS ACTION` for each, with commas between.
    """
    made: list[LinkChange | ProcessChange] = []
    for change in text.split(", "):
        at_s, fault, subject, what, *shape = change.split()
        at_us = int(at_s) * 1_000_000
        if "/" in subject:
            made.append(ProcessChange(at_us, fault, subject, ProcessAction(what)))
        else:
            state, parameters = LinkState(what), SHAPES["".join(shape)]
            made += [LinkChange(at_us, fault, subject, d, state, parameters) for d in LinkDirectionName]
    names = dict.fromkeys(change.fault for change in made)
    faults = tuple(FaultPlan(fault, "cut", "r2-r3", 0) for fault in names)
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


CUT = "19 cut r2-r3 blackhole, 41 restore r2-r3 up"


def test_times_are_those_at_which_changes_were_applied() -> None:
    assert spans(record_of(CUT, applied=True)) == [("cut", 19.05, 41.05)]


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        pytest.param(
            "5 slow r2-r3 up slow, 9 usual r2-r3 up",
            [("slow", 5, 9)],
            id="a changed shape disturbs and the configured one does not",
        ),
        pytest.param(
            "1 flap r2-r3 blackhole, 2 flap r2-r3 up, 4 flap r2-r3 blackhole, 5 flap r2-r3 up",
            [("flap", 1, 2), ("flap", 4, 5)],
            id="a flapping link has a band for each time it is down",
        ),
        pytest.param(
            "2 gone r2/proxy-0 kill, 8 back r2/proxy-0 restart",
            [("gone", 2, 8)],
            id="a process is disturbed until it is restarted",
        ),
        pytest.param(
            "2 gone r2/proxy-0 stop, 8 back r2/proxy-0 continue",
            [("gone", 2, 8)],
            id="a process is disturbed until it goes on",
        ),
        pytest.param(
            "5 slow r2-r3 up slow, 8 cut r2-r3 blackhole slow, 10 slow r2-r3 blackhole, 12 cut r2-r3 up",
            [("slow", 5, 10), ("cut", 8, 12)],
            id="faults that overlap have each its own end",
        ),
        pytest.param(
            "2 stop r2/proxy-0 stop, 4 kill r2/proxy-0 kill, 8 back r2/proxy-0 restart",
            [("stop", 2, 8), ("kill", 4, 8)],
            id="a stopped process that is killed has both bands",
        ),
        pytest.param(
            "2 stop r2/proxy-0 stop, 3 reset r2/proxy-1 reset,"
            " 4 again r2/proxy-0 reset, 8 on r2/proxy-0 continue",
            [("stop", 2, 8), ("reset", 3, 3), ("again", 4, 4)],
            id="a reset is a moment and ends nothing else",
        ),
    ],
)
def test_a_band_lasts_until_the_change_that_reverts_it(changes: str, found: list[Any]) -> None:
    assert spans(record_of(changes)) == found


def test_a_partition_of_several_links_is_one_band() -> None:
    record = record_of(
        "3 split r0-r2 blackhole, 3 split r1-r2 blackhole, 6 heal r0-r2 up 40ms, 7 heal r1-r2 up 35ms"
    )
    assert spans(record) == [("split", 3, 7)]
    assert bands(record)[0].links == ("r0-r2", "r1-r2")


@pytest.mark.parametrize(("ended_s", "found"), [(6, []), (30, [("cut", 19, None)])])
def test_changes_planned_after_the_end_make_no_band(ended_s: int, found: list[Any]) -> None:
    times = Times(zero_ns=ZERO_NS, stopped_ns=ZERO_NS + ended_s * 10**9)
    assert spans(of_run(record_of(CUT), times=times)) == found


def test_a_change_that_was_never_applied_makes_no_band() -> None:
    record = record_of("19 cut r2-r3 blackhole, 41 again r0-r1 blackhole", applied=True)
    happened = tuple(applied for change, applied in record.run.changes_applied if change.fault == "cut")
    assert spans(of_run(record, changes=happened)) == [("cut", 19.05, None)]


def test_a_fault_within_another_has_a_band_of_its_own_with_its_name_below() -> None:
    record = record_of(
        "5 slow r2-r3 up slow, 8 cut r2-r3 blackhole slow, 12 cut r2-r3 up slow, 20 slow r2-r3 up"
    )
    assert spans(record) == [("slow", 5, 20), ("cut", 8, 12)]
    assert [(band.links, band.row) for band in bands(record)] == [(("r2-r3",), 0), (("r2-r3",), 1)]
    flaps = [f"{at_s} flap r2-r3 {'blackhole' if at_s % 2 else 'up'} slow" for at_s in (7, 8, 9, 10)]
    record = record_of(", ".join(["5 slow r2-r3 up slow", *flaps, "20 slow r2-r3 up"]))
    assert spans(record) == [("slow", 5, 20), ("flap", 7, 8), ("flap", 9, 10)]
    assert [band.row for band in bands(record)] == [0, 1, 1]


def test_a_cut_of_a_cut_link_has_its_planned_times() -> None:
    record = record_of("5 cut r2-r3 blackhole, 12 later r2-r3 up")
    later = FaultPlan("later", "cut", "r3-r2", 8_000_000, 12_000_000)
    cut = FaultPlan("cut", "cut", "r2-r3", 5_000_000, 10_000_000)
    record = of_plan(record, faults=(cut, later))
    assert spans(record) == [("cut", 5, 10), ("later", 8, 12)]
    assert [band.links for band in bands(record)] == [("r2-r3",)] * 2
    changes = (*record.plan.changes[:2], *(replace(each, fault="cut") for each in record.plan.changes[2:]))
    record = of_plan(record, faults=(cut, replace(later, until_us=9_000_000)), changes=changes)
    assert spans(record)[1] == ("later", 8, 9)


def test_a_full_disk_lasts_regardless_of_its_process() -> None:
    record = record_of(
        "2 full r2/proxy-0 fill, 3 end r2/proxy-0 kill, 4 again r2/proxy-0 restart, 6 room r2/proxy-0 unfill"
    )
    changes = record.plan.changes
    rules = ("full", None, None, "full")
    changes = tuple(replace(each, rule=rule) for each, rule in zip(changes, rules, strict=True))
    record = of_plan(record, changes=changes)
    assert spans(record) == [("full", 2, 6), ("end", 3, 4)]


def test_two_separations_of_one_process_end_independently() -> None:
    record = record_of(
        "2 one r2/proxy-0 separate, 3 two r2/proxy-0 separate,"
        " 4 one r2/proxy-0 rejoin, 6 two r2/proxy-0 rejoin"
    )
    peers = {"one": ("r2/client-0",), "two": ("r2/client-1",)}
    changes = tuple(replace(each, peers=peers[each.fault]) for each in record.plan.changes)
    record = of_plan(record, changes=changes)
    assert spans(record) == [("one", 2, 4), ("two", 3, 6)]
    assert [band.processes for band in bands(record)] == [("r2/proxy-0",)] * 2
    assert [band.links for band in bands(record)] == [()] * 2
