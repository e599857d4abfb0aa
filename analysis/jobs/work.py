"""What is handed out, and to whom: independent tasks, and workers that carry them out.

A task is plain data that can be sent elsewhere. It reads files of the run and writes files of tables in the
making, each under a temporary name that is renamed at the end, so that doing it twice does no harm; what it
returns is small. Small tasks go several to a handful, since to start one elsewhere costs more than they do.
"""

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

R_co = TypeVar("R_co", covariant=True)
R = TypeVar("R")

HANDFULS = 2
"""Per core, at least: so that one that takes long does not keep the others waiting."""
HANDFUL_BYTES = 32 << 20
"""What is worth a handful of its own."""


class Task(Protocol[R_co]):
    """A piece of work that can be done anywhere where its files can be seen."""

    def run(self) -> R_co:
        """Do it."""


class Workers(Protocol):
    """Whoever carries out tasks."""

    def carry_out(self, tasks: Sequence[Task[R]], doing: str) -> list[R]:
        """Do all tasks; their results, in any order.

        doing: what this is, for the error. Raises AnalysisError if a task fails.
        """


def weight_of(task: Any) -> int:
    """How long a task takes, roughly, in bytes that it reads; 1 for one that does not say."""
    return int(getattr(task, "weight", 1))


def handfuls(tasks: Sequence[Task[R]], cores: int) -> list[tuple[Task[R], ...]]:
    """Put tasks together so that all handfuls take about as long, the longest tasks first.

    Longest processing time first: each task goes to the handful that has least so far (Graham 1969).
    """
    total = sum(weight_of(task) for task in tasks)
    number = min(len(tasks), max(cores * HANDFULS, total // HANDFUL_BYTES))
    gathered: list[list[Task[R]]] = [[] for _ in range(number)]
    weights = [0] * number
    for task in sorted(tasks, key=lambda one: -weight_of(one)):
        least = weights.index(min(weights))
        gathered[least].append(task)
        weights[least] += weight_of(task)
    return [tuple(handful) for handful in gathered]
