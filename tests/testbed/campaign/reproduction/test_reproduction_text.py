"""Texts about a repeated run: how to continue, differences of this machine, conclusions."""

from dataclasses import replace
from pathlib import Path

import pytest

from analysis.claims import SummaryClaim
from analysis.reproduction import ClaimVerdict, JudgedClaim
from experiments.campaigns.campaign import RunState
from experiments.campaigns.sweepdir import SweepDirectory, runs
from experiments.records.run_record import MachineRecord, RunRecord, record_from_json
from testbed.campaign.reproduction.archived_run import ArchivedRun
from testbed.campaign.reproduction.reproduction_text import (
    NAMED_MAX,
    ReproductionResult,
    differences,
    last_line,
    show_interrupted,
    show_reproduced,
)
from tests.analysis.timelines.world import run_json
from tests.campaigns import sweep_record

HOLDS, DIFFERS, UNDECIDED = ClaimVerdict.HOLDS, ClaimVerdict.DIFFERS, ClaimVerdict.UNDECIDED
RUNS = [replace(run, state=RunState.DONE, verdict="passed") for run in runs({}, 3, 7)]


def record() -> RunRecord:
    return record_from_json(run_json())


def reproduced(*judged: JudgedClaim, measured: int = 3) -> ReproductionResult:
    claimed = (*(each.claim for each in judged), SummaryClaim("run", "tiny", None, 0.0))
    return ReproductionResult(
        archived=ArchivedRun("a.tar.zst", record(), claimed, {}),
        directory=SweepDirectory(Path("runs/again")),
        record=sweep_record(*RUNS),
        judged=judged,
        measured=measured,
        exact=False,
        changed=(),
        here=None,
    )


def judged(figure: str, verdict: ClaimVerdict, value: object = 0, *, why: str = "") -> JudgedClaim:
    return JudgedClaim(SummaryClaim(figure, value, None, 0.0), verdict, value, why=why)


def test_the_command_to_resume_can_be_pasted_with_any_paths(capsys):
    show_interrupted(["my run.tar.zst", "--repeat", "3"], SweepDirectory(Path("my runs/tiny")))
    assert capsys.readouterr().out == (
        "interrupted: continue with `cutset reproduce 'my run.tar.zst' --repeat 3 --resume 'my runs/tiny'`\n"
    )


def test_differences_of_this_machine_are_one_line():
    there = record()
    assert differences(there, there) == "machine and versions: as in the archive"
    commit = "0123456789abcdef0123-changed"
    here = replace(there, commit=commit, machine=MachineRecord("here", 4, 8 << 30), links="netem")
    said = differences(there, here)
    assert said.startswith("differences from the archive: ")
    assert "commit " in said
    assert " -> 0123456789-changed, " in said
    assert "machine.memory_bytes " in said
    assert " -> 8.0 GiB" in said
    assert f"links {there.links} -> netem" in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("verdicts", "said"),
    [
        ([HOLDS, HOLDS], "reproduced: all 2 claims hold"),
        ([HOLDS, DIFFERS], "not reproduced: 1 of 2 claims differ"),
        ([HOLDS, UNDECIDED], "not reproduced: 1 of 2 claims are undecided"),
        ([DIFFERS, UNDECIDED], "not reproduced: 1 of 2 claims differ, 1 of 2 claims are undecided"),
        ([], "not reproduced: no claim can be judged"),
    ],
)
def test_the_last_line_is_the_conclusion(verdicts, said):
    found = reproduced(*(judged(f"events.a{n}", verdict) for n, verdict in enumerate(verdicts)))
    assert last_line(found) == said
    assert found.reproduced == said.startswith("reproduced")


def test_differing_claims_come_first_and_minor_ones_are_counted(capsys):
    show_reproduced(
        reproduced(
            judged("fidelity.links.r0-r1.loss", HOLDS),
            judged("events.lost", HOLDS),
            judged("fidelity.capture_drops", DIFFERS),
            judged("recovery.cut.switch_s", UNDECIDED, why="1 of 3 repeats have this figure"),
            judged("verdict", DIFFERS, "passed"),
        )
    )
    table = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    assert [line.split()[0] for line in table[1:5]] == [
        "verdict",
        "fidelity.capture_drops",
        "recovery.cut.switch_s",
        "events.lost",
    ]
    assert table[3].endswith("UNDECIDED: 1 of 3 repeats have this figure")
    assert table[5:] == ["  and 1 more that hold"]


def test_a_limited_number_of_differences_is_shown_and_the_rest_counted(capsys):
    show_reproduced(reproduced(*(judged(f"measures.a{n}", DIFFERS) for n in range(NAMED_MAX + 2))))
    said = capsys.readouterr().out
    assert said.count(" DIFFERS\n") == NAMED_MAX
    assert "  and 2 more that do not hold\n" in said
    assert "not judged: 1 that describe only the archived run" in said
