"""Settings of the whole suite: few fixed examples, available programs, and groups of tests.

Several workers share the suite (pytest-xdist, `--dist loadgroup`) in lanes, which overlap where they wait.
Tests that build networks would disturb each other's clocks: runs on this machine are one lane; those with a
lab of machines or another kernel, and links without a run, are another, since they mostly wait. Those with
Spark or a browser are a third, and start each once. All other tests are shared by file among the other
workers, and by all when the lanes are finished. A lane is a group that stays in one worker
(`testbed/pytest_plugin/groups.py`) and starts first (`--no-loadscope-reorder`).
"""

import contextlib
import gc
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from experiments.files.scratch import scratch
from testbed.doctor import packages
from tests.s3 import CREDENTIALS, s3_server
from tests.testbed.provision.declared import DPKG, declared_programs, installed, link_all

settings.register_profile("suite", derandomize=True, deadline=None, max_examples=25)
settings.register_profile("thorough", deadline=None, max_examples=1_000)  # --hypothesis-profile thorough
settings.load_profile("suite")

LANES = {
    "machines": "machines",
    "uml": "machines",
    "network": "network",
    "spark": "spark",
    "browser": "spark",
}
"""The lane of a test, by its marker. The first of these that it has counts."""
WITHOUT_RUNS = ("tests/testbed/links/", "tests/testbed/network/", "tests/testbed/capturing/")
"""Folders of tests of networks that start no run. They share the lane of machines."""
GARBAGE_MAX = 20_000
"""Objects between two collections of the youngest."""
ORDER = {lane: place for place, lane in enumerate(dict.fromkeys(LANES.values()))}


def pytest_configure(config: pytest.Config) -> None:
    """Only programs of declared packages are there, where packages are Debian's. Workers inherit the PATH.

    They also inherit what SIGINT does: a shell lets what it starts in the background ignore it, and so would
    all that is interrupted here.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    status = DPKG / "status"
    if hasattr(config, "workerinput") or not status.exists():
        return
    kept = contextlib.ExitStack()
    config.add_cleanup(kept.close)
    folder = kept.enter_context(scratch("cutset-programs-", Path(tempfile.gettempdir())))
    folder.chmod(0o755)  # other users' processes look there, too
    link_all(declared_programs(packages(), list(installed(status.read_text()))), folder)
    os.environ["PATH"] = str(folder)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    lanes = {item: lane for item in items if (lane := lane_of(item)) is not None}
    for item, lane in lanes.items():
        item.add_marker(pytest.mark.xdist_group(lane))
    items.sort(key=lambda item: ORDER.get(lanes.get(item), len(ORDER)))


def pytest_collection_finish() -> None:
    """Leave what is imported out of garbage collections: thousands of them take a tenth of the time."""
    gc.freeze()
    gc.set_threshold(GARBAGE_MAX)


@pytest.fixture(scope="session")
def s3_options() -> Iterator[str]:
    """Yield the URL options of an S3 on loopback with a bucket `lab`."""
    with s3_server() as options:
        yield options


@pytest.fixture
def s3(s3_options: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the URL options, with credentials in this process's environment."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    return s3_options


def lane_of(item: pytest.Item) -> str | None:
    lane = next((lane for marker, lane in LANES.items() if item.get_closest_marker(marker)), None)
    return LANES["machines"] if lane == LANES["network"] and item.nodeid.startswith(WITHOUT_RUNS) else lane
