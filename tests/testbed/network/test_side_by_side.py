"""Two networks on one machine at the same time, with the same names and addresses."""

import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from experiments.planned.changes import LinkState
from testbed.links.selection import select_emulator
from testbed.network.network import Network
from tests.testbed.network.observations import reachable, set_link
from tests.testbed.network.plans import make_plan
from tests.testbed.sandboxed import finish, start

pytestmark = pytest.mark.network

PLAN = make_plan(2, 1)
MEETING_S_MAX = 60.0


def _network(meeting: str, me: str, other: str, *, cut: bool) -> dict[str, Any]:
    with Network(PLAN, select_emulator("auto", 1)) as network:
        if cut:
            set_link(network, PLAN, "r0-r1", LinkState.BLACKHOLE)
        _meet(Path(meeting), me, other)  # both are up, and one is cut
        seen = reachable(network)
        _meet(Path(meeting), f"{me}-done", f"{other}-done")
        return seen


def _meet(meeting: Path, me: str, other: str) -> None:
    (meeting / me).touch()
    deadline_s = time.monotonic() + MEETING_S_MAX
    while not (meeting / other).exists():
        assert time.monotonic() < deadline_s, f"{other} did not come"
        time.sleep(0.01)


def _cut_network(meeting: str) -> dict[str, Any]:
    return _network(meeting, "one", "other", cut=True)


def _whole_network(meeting: str) -> dict[str, Any]:
    return _network(meeting, "other", "one", cut=False)


def test_a_cut_in_one_network_does_not_affect_the_other():
    with tempfile.TemporaryDirectory() as meeting:
        calls = [start(_cut_network, meeting), start(_whole_network, meeting)]
        cut, whole = [finish(call) for call in calls]
    assert cut == {"r0 r1": False}
    assert whole == {"r0 r1": True}
