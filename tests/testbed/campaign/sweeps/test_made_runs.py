"""Runs for a caller: their results when the backend breaks or the user ends them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from experiments.campaigns.campaign import FailureKind
from experiments.loader import read_experiment
from experiments.records.run_record import Times
from experiments.records.rundir import RunDirectory
from testbed.backends.backend import Follow
from testbed.backends.simulator import Simulator
from testbed.campaign.sweeps import made_runs
from testbed.campaign.sweeps.made_runs import MadeRun, make_runs, write_report
from testbed.campaign.texts.progress import Follower
from testbed.errors import MachineError, TestbedError
from testbed.run_selection import RunSelection
from testbed.runner.run_control import RunResult
from tests.testbed.runner.live import write_experiment

pytestmark = pytest.mark.slow

VIRTUAL = "on: simulator\ncaptures: none\nsweep: {workload.rate: [100/s, 200/s]}\nrepeat: 3\n"


class Breaking(Simulator):
    """A backend that breaks in a given way after each run."""

    def __init__(self, break_: Callable[[RunDirectory], RunResult]) -> None:
        self._break = break_

    def execute(self, run: RunDirectory, follow: Follow) -> RunResult:
        """See `Backend`."""
        super().execute(run, follow)
        return self._break(run)


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Return two runs of the tiny experiment with these endings, by default good ones."""

    def make(
        break_: Callable[[RunDirectory], RunResult] | None = None, *, analyze: bool = True
    ) -> list[MadeRun]:
        @contextmanager
        def open_backend(_name: str, _say: Callable[[str], None]) -> Iterator[Simulator]:
            yield Breaking(break_) if break_ else Simulator()

        monkeypatch.setattr(made_runs, "open_backend", open_backend)
        path = write_experiment(tmp_path, faults=VIRTUAL)
        file = read_experiment(str(path), ["duration=1s", "workload.rate=100/s"], ("sweep", "repeat"))
        chosen = RunSelection.from_options(file, backend=None, links="relay", seed=7, repeat=2)
        return list(make_runs(chosen, tmp_path / "runs", analyze=analyze, follow=Follower("tiny")))

    return make


def raising(error: BaseException) -> Callable[[RunDirectory], RunResult]:
    def break_(_run: RunDirectory) -> RunResult:
        raise error

    return break_


def test_each_run_has_the_next_seed_and_its_replay_command(made):
    runs = made()
    assert [(run.seed, run.verdict) for run in runs] == [(7, "passed"), (8, "passed")]
    assert [run.failure for run in runs] == [None, None]
    assert runs[1].replay.endswith(
        "tiny.yaml --set duration=1s --set workload.rate=100/s --set sweep=null --seed 8 --repeat 1"
        " --on simulator --links relay"
    )
    assert runs[0].report is None
    write_report(runs[0], Follower("tiny"))
    assert runs[0].report == runs[0].directory.report_html


def test_without_an_analysis_a_completed_run_is_fine(made):
    run = made(analyze=False)[0]
    assert (run.summary, run.verdict, run.failure) == (None, "completed", None)
    write_report(run, Follower("tiny"))
    assert run.report is None


def test_a_broken_run_is_yielded_with_its_problem(made):
    runs = made(raising(TestbedError("the sandbox ended")))
    assert [(run.summary, run.problem) for run in runs] == [(None, "the sandbox ended")] * 2
    assert runs[0].failure is FailureKind.HARNESS
    assert runs[0].why == "the sandbox ended"


def test_a_run_that_was_never_measured_reports_it(made):
    def unmeasured(run: RunDirectory) -> RunResult:
        return RunResult(replace(run.read_run(), times=Times()), by_user=False)

    assert made(unmeasured)[0].problem == "it ended before time 0"


def test_a_machine_error_and_the_user_end_all_runs(made):
    with pytest.raises(MachineError, match="no tcpdump"):
        made(raising(MachineError("no tcpdump")))
    with pytest.raises(KeyboardInterrupt):
        made(lambda run: RunResult(run.read_run(), by_user=True))
