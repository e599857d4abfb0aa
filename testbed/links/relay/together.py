"""Doing the same to many sockets at once.

The kernel waits for an RCU grace period, some 10 ms, whenever a receive ring is made or closed: for a
hundred links one after the other that would be seconds. Waits of different threads share their grace
periods.
"""

from collections.abc import Callable, Iterable
from threading import Thread
from typing import TypeVar

THREADS_MAX = 96

Item = TypeVar("Item")
Result = TypeVar("Result")


def together(work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """`work` of every item, in their order. All are tried; raises the error of the first that failed."""
    jobs = list(enumerate(items))
    results: dict[int, Result] = {}
    errors: dict[int, Exception] = {}
    waiting = iter(jobs)  # taking the next from a list's iterator is one step for Python's threads

    def run() -> None:
        for number, item in waiting:
            try:
                results[number] = work(item)
            except Exception as error:  # noqa: BLE001  raised below, in the thread that asked
                errors[number] = error

    threads = [Thread(target=run) for _ in jobs[:THREADS_MAX]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[min(errors)]
    return [results[number] for number, _ in jobs]
