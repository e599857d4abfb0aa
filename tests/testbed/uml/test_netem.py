"""netem in a kernel that has it: the suites of links and network for that kind.

User-mode Linux has one processor and coarse timers, so the suites' bounds on delays allow the lateness of a
plain timer in the same run. Its process starts are slow, so two dozen tests take a minute or two.
"""

import os
import re
import sys

import pytest

from testbed.links.selection import kernel_has_netem
from tests.testbed.links import test_links
from tests.testbed.uml.uml_machine import KERNEL, boot, is_installed

pytestmark = [pytest.mark.uml, pytest.mark.network, pytest.mark.timeout(1_800)]

SUITES = (
    "tests/testbed/links/test_links.py",
    "tests/testbed/links/test_short_cuts.py",
    "tests/testbed/network/test_faults.py",
    "tests/testbed/network/test_parallel_and_groups.py",
    "tests/testbed/sandbox/test_control_groups.py",  # of version 2
)
REPEATED = (
    "a_direction_that_another_machine_shapes_is_forwarded_unaltered[netem-forward]",
    "jitter_follows_its_distribution[netem-normal]",
    "datagrams_are_lost_one_by_one_however_they_are_sent[netem-offloads off]",
    "tcp_segments_are_lost_one_by_one_and_the_stream_is_complete[netem-offloads off]",
    "tcp_gets_the_rate_less_its_headers[netem-100]",
    "a_cut_may_be_one_way[netem]",
    "packets_larger_than_the_mtu_of_a_black_hole_vanish[netem-icmp dropped]",
)
"""Tests of links in which netem does the same as in another one. If the kernel has netem, they run there."""
TESTS_MIN = 25
SUITES_S_MAX = 1_500.0


@pytest.fixture(autouse=True, scope="module")
def _installed() -> None:
    if is_installed():
        return
    if kernel_has_netem() and "CI" not in os.environ:
        pytest.skip(f"{KERNEL} is not installed; this machine's own kernel has netem, and the suites used it")
    pytest.fail(f"{KERNEL} is not installed (Debian and Ubuntu: package user-mode-linux)")


def test_the_repeated_tests_exist() -> None:
    for name in REPEATED:
        assert hasattr(test_links, f"test_{name.partition('[')[0]}"), name


def test_the_suites_pass_with_netem_in_a_kernel_that_has_it() -> None:
    quiet = ["-q", "--color=no", "--tb=short", "-p", "no:cacheprovider"]
    repeated = (f"--deselect={SUITES[0]}::test_{name}" for name in REPEATED)
    chosen = ["-k", "netem or any_version", *repeated]
    booted = boot([sys.executable, "-m", "pytest", *quiet, *SUITES, *chosen], timeout_s=SUITES_S_MAX)
    assert booted.returncode == 0, booted.console
    passed = re.search(r"(\d+) passed", booted.console)
    assert passed is not None, booted.console
    assert int(passed[1]) >= TESTS_MIN
    assert "skipped" not in booted.console
