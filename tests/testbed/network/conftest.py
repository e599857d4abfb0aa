"""Starts the long cut of `test_silent_cut` as soon as that test is collected; other tests run meanwhile."""

import subprocess

import pytest

from tests.testbed.network.long_cut import long_cut
from tests.testbed.sandboxed import start

STARTED = pytest.StashKey[subprocess.Popen[str]]()


def pytest_collection_finish(session: pytest.Session) -> None:
    wanted = any("started_long_cut" in getattr(item, "fixturenames", ()) for item in session.items)
    if wanted and not session.config.option.collectonly:
        session.config.stash[STARTED] = start(long_cut)


def pytest_sessionfinish(session: pytest.Session) -> None:
    process = session.config.stash.get(STARTED, None)
    if process is not None:
        process.kill()


@pytest.fixture
def started_long_cut(pytestconfig):
    return pytestconfig.stash[STARTED]
