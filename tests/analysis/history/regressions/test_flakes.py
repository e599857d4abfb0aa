"""Every failure counts, has one kind, and is new, lasting, flaky or over."""

from typing import Any

import pytest

from analysis.history.regressions.findings import Flake, failure_of, failure_reason
from analysis.history.regressions.flakes import FLAKE_OVER_NIGHTS, flakes_of
from experiments.campaigns.campaign import FailureKind

TEXT = "events.lost == 0"
Expectations = dict[tuple[str, str], list[tuple[str, bool]]]


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


def nights(*held: str) -> tuple[list[dict[str, Any]], Expectations, str]:
    """Return nights of runs from text, a letter for each run: `+` for an expectation that held, `-` for one
    that did not, `i` invalid, `c` crashed. Returns what `flakes_of` takes.
    """
    runs, expectations = [], {}
    for day, each in enumerate(held):
        night = f"2026-{1 + day // 28:02}-{1 + day % 28:02}"
        for number, how in enumerate(each):
            name = f"{night}-{number}"
            verdict = {"+": "passed", "-": "failed", "i": "invalid", "c": "crashed"}[how]
            outcome = "crashed" if how == "c" else "completed"
            runs.append(row(verdict, night=night, run=name, outcome=outcome))
            if how != "c":
                expectations[night, name] = [(TEXT, how == "+")]
    return runs, expectations, runs[-1]["night"]


def only(*held: str) -> Flake:
    (flake,) = flakes_of(*nights(*held))
    return flake


def test_a_run_that_never_failed_is_no_flake() -> None:
    assert flakes_of(*nights("+++", "+++")) == []


def test_a_later_passed_run_does_not_hide_a_failure() -> None:
    flake = only("+++", "-++")
    assert (flake.failed, flake.runs, flake.tonight, flake.pattern) == (1, 6, 1, "new")
    assert flake.rate == pytest.approx(1 / 6)
    assert flake.interval[0] < 1 / 6 < flake.interval[1]
    assert flake.run == "2026-01-02-0"


@pytest.mark.parametrize(
    ("held", "pattern", "since"),
    [
        (["+", "-"], "new", "2026-01-02"),
        (["+", "-", "-"], "lasting", "2026-01-02"),
        (["+", "-", "-+"], "flaky", None),
        (["-", "+", "-"], "flaky", "2026-01-03"),
        (["-", "+"], "flaky", None),
        (["-", *["+"] * FLAKE_OVER_NIGHTS], "over", None),
    ],
)
def test_the_pattern_of_a_failure(held: list[str], pattern: str, since: str | None) -> None:
    flake = only(*held)
    assert (flake.pattern, flake.failing_since) == (pattern, since)


def test_an_expectation_is_counted_among_runs_that_are_sound() -> None:
    flakes = {flake.failure: flake for flake in flakes_of(*nights("+i", "-c"))}
    expected = flakes[FailureKind.EXPECTATION]
    assert (expected.text, expected.failed, expected.runs) == (TEXT, 1, 2)
    assert (flakes[FailureKind.FIDELITY].failed, flakes[FailureKind.FIDELITY].runs) == (1, 4)
    assert (flakes[FailureKind.CRASH].failed, flakes[FailureKind.CRASH].tonight) == (1, 1)
    assert FailureKind.HARNESS not in flakes


def test_the_most_urgent_flakes_come_first() -> None:
    runs, expectations, night = nights("+", "+", "-")
    for run in runs:
        expectations[run["night"], run["run"]].append(("old", run["night"] != "2026-01-01"))
    assert [flake.text for flake in flakes_of(runs, expectations, night)] == [TEXT, "old"]


def test_runs_that_may_fail_come_last() -> None:
    runs, expectations, night = nights("+", "-")
    flaky = [row(night=run["night"], run=f"{run['run']}-b", entry="b", allow_failure=True) for run in runs]
    for run in flaky:
        expectations[run["night"], run["run"]] = [("peak", False)]
    found = flakes_of([*flaky, *runs], expectations, night)
    assert [(flake.text, flake.allowed) for flake in found] == [(TEXT, False), ("peak", True)]
