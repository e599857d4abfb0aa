"""netem for real: the suites of links and network, for that kind, in a kernel that has it.

User-mode Linux has one processor and coarse timers, so the suites' bounds on delays allow what a plain timer
is late in the same run; its process starts are slow, so that some tens of tests take two minutes.
"""

import os
import re
import sys

import pytest

from testbed.links.selection import kernel_has_netem
from tests.testbed.uml.uml_machine import KERNEL, boot, is_installed

pytestmark = [pytest.mark.uml, pytest.mark.network, pytest.mark.timeout(1_800)]

SUITES = (
    "tests/testbed/links/test_links.py",
    "tests/testbed/links/test_short_cuts.py",
    "tests/testbed/network/test_faults.py",
    "tests/testbed/network/test_machines.py",
    "tests/testbed/sandbox/test_control_groups.py",  # of version 2
)
TESTS_MIN = 28
SUITES_S_MAX = 1_500.0


@pytest.fixture(autouse=True, scope="module")
def _installed() -> None:
    if is_installed():
        return
    if kernel_has_netem() and "CI" not in os.environ:
        pytest.skip(f"{KERNEL} is not installed; this machine's own kernel has netem, and the suites used it")
    pytest.fail(f"{KERNEL} is not installed (Debian and Ubuntu: package user-mode-linux)")


def test_the_suites_pass_with_netem_in_a_kernel_that_has_it() -> None:
    quiet = ["-q", "--color=no", "--tb=short", "-p", "no:cacheprovider"]
    chosen = ["-k", "netem or any_version"]
    booted = boot([sys.executable, "-m", "pytest", *quiet, *SUITES, *chosen], timeout_s=SUITES_S_MAX)
    assert booted.returncode == 0, booted.console
    passed = re.search(r"(\d+) passed", booted.console)
    assert passed is not None, booted.console
    assert int(passed[1]) >= TESTS_MIN
    assert "skipped" not in booted.console
