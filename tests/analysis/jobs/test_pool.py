"""Child processes execute tasks with the results of sequential execution, and all end."""

import os
import signal
from dataclasses import dataclass
from functools import partial

import psutil
import pytest

from analysis.errors import AnalysisError
from analysis.jobs.work import InlineWorkers, ProcessPool, task_batches


@dataclass(frozen=True)
class Double:
    number: int

    @property
    def weight(self):
        return self.number

    def __call__(self):
        return 2 * self.number, os.getpid()


def fail(error):
    raise error


@pytest.mark.parametrize("workers", [InlineWorkers(), ProcessPool(1), ProcessPool(3)])
def test_every_task_is_done_once(workers):
    done = workers.execute([Double(number) for number in range(20)], "doubling")
    assert sorted(result for result, _ in done) == list(range(0, 40, 2))


@pytest.mark.parametrize("workers", [InlineWorkers(), ProcessPool(2)])
def test_results_are_in_the_order_of_tasks_for_any_weights(workers):
    numbers = [3, 90 << 20, 1, 100 << 20, 2]
    done = workers.execute([Double(number) for number in numbers], "doubling")
    assert [result for result, _ in done] == [2 * number for number in numbers]


def test_tasks_run_in_children_that_end_afterwards():
    done = ProcessPool(2).execute([Double(number) for number in range(4)], "doubling")
    pids = {pid for _, pid in done}
    assert os.getpid() not in pids
    assert not pids & {child.pid for child in psutil.Process().children()}


@pytest.mark.parametrize("workers", [InlineWorkers(), ProcessPool(2)])
@pytest.mark.parametrize(
    ("error", "said"),
    [(AnalysisError("a.pcap: torn"), "a.pcap: torn"), (ValueError("no number"), "ValueError: no number")],
)
def test_a_task_that_fails_is_reported_with_what_was_being_done(workers, error, said):
    with pytest.raises(AnalysisError, match=f"^doubling failed: {said}$"):
        workers.execute([Double(1), partial(fail, error)], "doubling")


def test_a_child_that_is_killed_is_an_error_and_no_hang():
    with pytest.raises(AnalysisError, match="doubling failed: a process was killed"):
        ProcessPool(2).execute([partial(signal.raise_signal, signal.SIGKILL), Double(1)], "doubling")


def test_batches_hold_every_task_once_and_heavy_ones_alone():
    heavy, light = [Double(100 << 20), Double(90 << 20)], [Double(1) for _ in range(10)]
    gathered = task_batches([*light, *heavy], 1)
    assert sorted(task.number for handful in gathered for task in handful) == [1] * 10 + [90 << 20, 100 << 20]
    assert gathered[0] == (heavy[0],)
    assert gathered[1] == (heavy[1],)
    assert task_batches([], 4) == []
