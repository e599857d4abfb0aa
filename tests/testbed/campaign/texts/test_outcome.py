"""The summary on standard output."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments.records.observations import Shipment
from experiments.records.run_record import Outcome, RunPhase, RunRecord
from experiments.records.rundir import RunDirectory
from testbed.campaign.texts.outcome import exit_code, show_outcome
from testbed.runner.run_control import RunResult
from tests.run_json import SMALL

RUN = RunDirectory(Path("runs/x"))
ENDED = RunRecord(SMALL, phase=RunPhase.COLLECTED, outcome=Outcome.COMPLETED)
SUMMARY: dict[str, Any] = {
    "verdict": "failed",
    "fidelity": {
        "valid": False,
        "reasons": ["capture drops: 3"],
        "notes": ["recovery.cut: catch_up_s: too late"],
    },
    "events": {
        "published": 4_800_000,
        "delivered": 38_400_000,
        "lost": 1,
        "duplicated": 0,
        "out_of_order": None,
        "corrupted": 0,
    },
    "losses": {
        "pairs": 1_200,
        "most": [
            {"client": f"r{i}-client-0", "stream": "r2", "lost": 9 - i, "published": 500} for i in range(5)
        ],
    },
    "throughput": {"events_per_s": 79_998.4, "bytes_per_s": 799_984.0},
    "latency": {"p50_ms": 84.25, "p95_ms": 101.0, "p99_ms": 1432.6, "max_ms": None},
    "recovery": {"cut": {"detect_s": 0.512, "switch_s": 0.98, "catch_up_s": None, "settled_s": 1.5}},
    "expectations": [
        {"text": "recovery.cut.switch_s <= 0.5", "value": 0.98, "held": False},
        {"text": "fidelity.valid == true", "value": False, "held": False},
    ],
}


def shown(
    capsys: pytest.CaptureFixture[str], problems: list[str], summary: dict[str, Any] | None
) -> list[str]:
    show_outcome(RUN, replace(ENDED, problems=tuple(problems)), summary)
    return capsys.readouterr().out.splitlines()


def test_the_whole_summary(capsys):
    assert shown(capsys, ["r1/proxy-0 ended unexpectedly"], SUMMARY) == [
        "problem      r1/proxy-0 ended unexpectedly",
        "verdict      failed",
        "fidelity     invalid",
        "             capture drops: 3",
        "events       4,800,000 published, 38,400,000 deliveries; "
        "1 lost, 0 duplicated, unknown out of order, 0 corrupted",
        "lost at      r0-client-0 9 of r2's 500 events, r1-client-0 8 of r2's 500, "
        "r2-client-0 7 of r2's 500, r3-client-0 6 of r2's 500, "
        "and 1,196 more (`cutset sql` shows all, table deliveries)",
        "throughput   79,998 events/s at a client",
        "latency      p50 84.2 ms, p95 101 ms, p99 1,433 ms, max unknown ms",
        "after cut    noticed 0.512 s, events flow again 0.98 s, latency settled 1.5 s",
        "expected     recovery.cut.switch_s <= 0.5: NOT HELD (0.98)",
        "expected     fidelity.valid == true: NOT HELD (false)",
        "note         recovery.cut: catch_up_s: too late",
        "report       runs/x/report.html",
        "summary      runs/x/summary.json",
    ]


def test_an_interrupted_run_is_not_called_crashed(capsys):
    crashed = {**SUMMARY, "verdict": "crashed"}
    show_outcome(RUN, replace(ENDED, outcome=Outcome.INTERRUPTED), crashed)
    assert "verdict      interrupted: it was ended early" in capsys.readouterr().out.splitlines()
    assert "verdict      crashed" in shown(capsys, [], crashed)


def test_without_an_analysis_the_content_of_run_json_is_shown(capsys):
    assert shown(capsys, [], None) == ["run          completed (collected)", "captures     runs/x/captures"]


@pytest.mark.parametrize(("complete", "code"), [(True, 0), (False, 1)])
def test_a_run_with_missing_files_is_no_success(complete, code):
    record = replace(ENDED, shipped=(Shipment("h0", complete=True), Shipment("h1", complete=complete)))
    assert exit_code(RunResult(record, by_user=False), None, analyze=False) == code
