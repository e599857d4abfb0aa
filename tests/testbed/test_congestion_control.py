"""A congestion control that a sandbox may not choose is refused before the run."""

import dataclasses
from pathlib import Path

import pytest

from testbed import congestion_control
from testbed.errors import MachineError
from tests.plans import plan_named

PLAN = plan_named("link-failure")


@pytest.fixture
def _reno_and_bbr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tcp_allowed_congestion_control").write_text("reno bbr\n")
    monkeypatch.setattr(congestion_control, "SYSCTLS", tmp_path)


@pytest.mark.usefixtures("_reno_and_bbr")
def test_a_forbidden_congestion_control_is_refused_with_the_allowed_ones():
    with pytest.raises(MachineError, match=r"cubic is not allowed on this machine \(allowed: reno, bbr\)"):
        congestion_control.check(dataclasses.replace(PLAN, congestion_control="cubic"))


@pytest.mark.usefixtures("_reno_and_bbr")
@pytest.mark.parametrize("asked", ["reno", "bbr", None])
def test_an_allowed_congestion_control_and_the_default_pass(asked: str | None):
    congestion_control.check(dataclasses.replace(PLAN, congestion_control=asked))


def test_this_machines_default_is_allowed():
    assert congestion_control.default() in congestion_control.allowed()
