"""The runs that fail a test, the kinds of failure, and their texts."""

import pytest

from experiments.campaigns.campaign import FailureKind
from testbed.pytest_plugin.fixture import RunFailedError, refuse_unsound
from tests.testbed.pytest_plugin.made import made, unsummarised

UNHELD = made(
    verdict="failed",
    expectations=[
        {"text": "events.lost == 0", "value": 3, "held": False},
        {"text": "recovery.cut.switch_s <= 2", "value": None, "held": False},
        {"text": "events.duplicated == 0", "value": 0, "held": True},
    ],
)
REASONS = [f"reason {number}" for number in range(5)]
INVALID = made(verdict="invalid", fidelity={"valid": False, "reasons": REASONS, "links": []})
CRASHED = made(verdict="crashed", record={"outcome": "crashed", "problems": ["the relay ended"]})
NODE_DIED = made(verdict="failed", record={"problems": ["r0/proxy-0 ended by signal 9"]})
BROKE = made(problem="the sandbox ended", record={"outcome": "crashed"})
NOT_ANALYSED = made(problem="Spark broke")


@pytest.mark.parametrize(
    ("run", "failure", "said"),
    [
        (
            UNHELD,
            FailureKind.EXPECTATION,
            "events.lost == 0 did not hold (3); recovery.cut.switch_s <= 2 did not hold (not measured)",
        ),
        (
            INVALID,
            FailureKind.FIDELITY,
            "reason 0; reason 1; reason 2; and 2 more",
        ),
        (CRASHED, FailureKind.CRASH, "the relay ended"),
        (NODE_DIED, FailureKind.CRASH, "r0/proxy-0 ended by signal 9"),
        (BROKE, FailureKind.CRASH, "the sandbox ended"),
        (NOT_ANALYSED, FailureKind.HARNESS, "Spark broke"),
    ],
)
def test_an_unsound_run_fails_the_test(run, failure, said):
    with pytest.raises(RunFailedError) as raised:
        refuse_unsound([made(), run], ())
    assert raised.value.failure is failure
    assert str(raised.value) == f"{failure}: {said} (/runs/a)"


@pytest.mark.parametrize(("run", "verdict"), [(UNHELD, "failed"), (INVALID, "invalid"), (CRASHED, "crashed")])
def test_an_allowed_verdict_does_not_fail_the_test_and_others_do(run, verdict):
    refuse_unsound([run], [verdict])
    others = {"failed", "invalid", "crashed"} - {verdict}
    with pytest.raises(RunFailedError):
        refuse_unsound([run], others)


def test_a_run_without_requested_analysis_must_complete():
    refuse_unsound([unsummarised()], ())
    crashed = unsummarised(outcome="crashed", problems=["the relay ended"])
    with pytest.raises(RunFailedError, match=r"^crash: the relay ended \(/runs/a\)$"):
        refuse_unsound([crashed], ())
    refuse_unsound([crashed], ("crashed",))
