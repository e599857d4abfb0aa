"""Selection of a run's link emulator."""

import pytest

from testbed.errors import MachineError
from testbed.links.selection import kernel_has_netem, select_emulator
from tests.testbed.sandboxed import sandboxed

pytestmark = pytest.mark.network


def _kind(asked: str) -> str:
    return select_emulator(asked, 1).kind


def test_the_answer_is_the_same_inside_a_sandbox():
    assert sandboxed(_kind, "auto") == _kind("auto")


@pytest.mark.skipif(kernel_has_netem(), reason="this kernel has netem")
def test_unavailable_netem_is_refused_with_the_remedy():
    with pytest.raises(MachineError, match=r"sch_netem.*modprobe sch_netem.*--links relay"):
        select_emulator("netem", 1)
