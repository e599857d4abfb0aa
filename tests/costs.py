"""A pytest plugin that records what each test costs: wall time, processor time, programs started.

Load it with `-p tests.costs --costs FILE`. Processor time includes child processes that ended and were waited
for, so a sandbox counts with everything in it. Costs of shared fixtures count for the test that sets them up.
Not counted: calls in the sandbox that stays (`tests/testbed/warm_sandbox.py`), and forks of planted defects,
whose parents end with the session.
"""

import json
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_started: Counter[str] = Counter()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--costs", metavar="FILE", help="write the cost of each test to FILE, as JSON lines")


def pytest_configure(config: pytest.Config) -> None:
    sys.addaudithook(_count_programs)
    if not hasattr(config, "workerinput") and config.getoption("--costs"):
        config.pluginmanager.register(_Writer(Path(config.getoption("--costs"))))


def _count_programs(event: str, args: tuple[Any, ...]) -> None:
    if event == "subprocess.Popen":
        argv = args[1]
        program = argv if isinstance(argv, (str, bytes)) else argv[0]
        _started[Path(str(program)).name] += 1


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    _started.clear()
    item.stash[_BEGAN] = (time.perf_counter(), *_processor_s())
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report = yield
    if call.when == "teardown":
        wall, own, children = item.stash[_BEGAN]
        own_now, children_now = _processor_s()
        report.user_properties.append(
            (
                "costs",
                {
                    "test": item.nodeid,
                    "wall_s": round(time.perf_counter() - wall, 4),
                    "own_cpu_s": round(own_now - own, 4),
                    "child_cpu_s": round(children_now - children, 4),
                    "programs": dict(_started),
                    "markers": sorted({mark.name for mark in item.iter_markers()}),
                },
            )
        )
    return report


def _processor_s() -> tuple[float, float]:
    return tuple(
        usage.ru_utime + usage.ru_stime
        for usage in (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    )


class _Writer:
    def __init__(self, path: Path) -> None:
        self._file = path.open("w")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, value in report.user_properties:
            if name == "costs" and report.when == "teardown":
                worker = getattr(report, "worker_id", "main")
                self._file.write(json.dumps({**value, "worker": worker, "ended": time.time()}) + "\n")
                self._file.flush()

    def pytest_unconfigure(self) -> None:
        self._file.close()


_BEGAN: pytest.StashKey[tuple[float, float, float]] = pytest.StashKey()
