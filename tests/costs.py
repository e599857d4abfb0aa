"""A pytest plugin that records what each test costs: wall time, processor time, programs started.

    make test ARGS="-p tests.costs --costs costs.jsonl"

It writes a line of JSON for each test and prints tables at the end. Processor time includes child processes
that ended and were waited for, so a sandbox counts with everything in it. Costs of shared fixtures count for
the test that sets them up. Children that stay for later tests do not count: a fixture's Java, the sandbox of
`tests/testbed/warm_sandbox.py`, the process that planted defects are forked from.
"""

import json
import resource
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

COLUMNS = ("wall_s", "own_cpu_s", "child_cpu_s")
NEEDS = ("uml", "machines", "network", "browser", "spark", "slow")
ROWS_MAX, PROGRAMS_MAX = 40, 12

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
    """Writes each test's costs as its report arrives, and prints the tables at the end."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w")
        self._costs: list[dict[str, Any]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, value in report.user_properties:
            if name == "costs" and report.when == "teardown":
                self._costs.append(value)
                self._file.write(json.dumps(value) + "\n")
                self._file.flush()

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.write_line("\n".join(tables(self._costs)))

    def pytest_unconfigure(self) -> None:
        self._file.close()


def tables(costs: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of three tables: costs by what tests need, by folder, and the dearest files."""
    groups: tuple[tuple[str, Callable[[dict[str, Any]], str]], ...] = (
        ("needs", lambda cost: next((need for need in NEEDS if need in cost["markers"]), "nothing")),
        ("folder", lambda cost: "/".join(cost["test"].split("::")[0].split("/")[:3])),
        ("file", lambda cost: cost["test"].split("::")[0]),
    )
    for name, key in groups:
        sums: dict[str, Counter[str]] = defaultdict(Counter)
        for cost in costs:
            sums[key(cost)].update({"tests": 1, **{column: cost[column] for column in COLUMNS}})
        yield f"{'tests':>6} {'wall s':>8} {'own s':>8} {'child s':>8}  {name}"
        dearest = sorted(sums.items(), key=lambda item: -(item[1]["own_cpu_s"] + item[1]["child_cpu_s"]))
        for group, total in dearest[:ROWS_MAX]:
            figures = " ".join(f"{total[column]:8.1f}" for column in COLUMNS)
            yield f"{total['tests']:6} {figures}  {group}"
    programs = sum((Counter(cost["programs"]) for cost in costs), Counter())
    yield "started: " + ", ".join(
        f"{count} {program}" for program, count in programs.most_common(PROGRAMS_MAX)
    )


_BEGAN: pytest.StashKey[tuple[float, float, float]] = pytest.StashKey()
