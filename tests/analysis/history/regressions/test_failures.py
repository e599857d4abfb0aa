"""Every failure of a run has one kind, and a reason."""

from typing import Any

import pytest

from analysis.history.regressions.findings import failure_of, failure_reason
from experiments.campaigns.campaign import FailureKind

TEXT = "events.lost == 0"


def row(verdict: str = "passed", **changes: Any) -> dict[str, Any]:
    given = {
        "night": "2026-03-01", "run": "r", "suite": "quick", "entry": "cut", "verdict": verdict,
        "valid": verdict in ("passed", "failed"), "outcome": "completed", "reasons": [], "problems": [],
        "allow_failure": False,
    }  # fmt: skip
    return given | changes


@pytest.mark.parametrize(
    ("run", "missed", "kind", "said"),
    [
        (row(), [], None, ""),
        (row("failed"), [TEXT], FailureKind.EXPECTATION, TEXT),
        (
            row("failed", problems=["r1/proxy-0 exited with 1"]),
            [],
            FailureKind.CRASH,
            "r1/proxy-0 exited with 1",
        ),
        (row("failed"), [], FailureKind.FIDELITY, "packets and deliveries disagree"),
        (row("invalid", reasons=["busy"]), [TEXT], FailureKind.FIDELITY, "busy"),
        (row("crashed", outcome="crashed", problems=["died"]), [], FailureKind.CRASH, "died"),
        (row("crashed", outcome="not started", problems=["no disk"]), [], FailureKind.HARNESS, "no disk"),
        (row("crashed", outcome="died while planned"), [], FailureKind.HARNESS, "died while planned"),
        (row("crashed"), [], FailureKind.HARNESS, "completed"),  # it ran, and was never analysed
    ],
)
def test_each_failure_has_one_kind(
    run: dict[str, Any], missed: list[str], kind: FailureKind | None, said: str
) -> None:
    assert failure_of(run, missed) is kind
    assert failure_reason(run, missed) == said
