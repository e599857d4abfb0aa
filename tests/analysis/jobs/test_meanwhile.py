"""Work in a child during a block: it is done at the end of the block, and its errors are raised."""

import gc
import os
import signal
import threading
from pathlib import Path

import pytest

from analysis.errors import AnalysisError
from analysis.jobs.work import ProcessPool, run_alongside
from topologies.errors import InputError


def _answer(question: Path, answer: Path) -> None:
    answer.write_text(f"{question.read_text()} {os.getpid()}")


def _refuse(problem: str) -> None:
    raise InputError("a-run", 3, "plan", problem)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_background_work_runs_during_the_block_and_is_done_after_it(tmp_path: Path) -> None:
    question, answer = tmp_path / "question", tmp_path / "answer"
    os.mkfifo(question)
    with run_alongside(_answer, question, answer, doing="answering"):
        question.write_text("who?")  # waits until the child reads
    said, process = answer.read_text().split()
    assert said == "who?"
    assert int(process) != os.getpid()


class _Owned:
    """An object in a reference cycle, which only the garbage collector frees; it reports the process."""

    def __init__(self, told: Path) -> None:
        self.cycle, self.owner, self.told = self, os.getpid(), told

    def __del__(self) -> None:
        if os.getpid() != self.owner:
            self.told.touch()


def _collect() -> None:
    gc.collect()


def test_children_do_not_collect_garbage_of_their_parent(tmp_path: Path) -> None:
    told = tmp_path / "freed-in-a-child"
    gc.disable()
    try:
        _Owned(told)
        with run_alongside(_collect, doing="collecting"):
            pass
        ProcessPool(2).execute([_collect] * 4, "collecting")
    finally:
        gc.enable()
    assert not told.exists()


def test_errors_of_background_work_are_raised() -> None:
    with (
        pytest.raises(InputError, match="a-run:3: plan: torn"),
        run_alongside(_refuse, "torn", doing="drawing"),
    ):
        pass


def test_a_killed_child_is_reported() -> None:
    message = "drawing failed: a process was killed, perhaps for lack of memory"
    with pytest.raises(AnalysisError, match=message), run_alongside(_die, doing="drawing"):
        pass


def test_a_block_that_fails_leaves_no_thread_or_child() -> None:
    before = threading.active_count()
    with pytest.raises(InputError), run_alongside(os.getpid, doing="answering"):
        _refuse("of the block")
    assert threading.active_count() == before
