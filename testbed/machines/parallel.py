"""Parallel calls for many machines, in threads: a slow or broken machine does not delay others.

It does not delay an interrupt either: the threads are daemons, which the command does not await at its end.
"""

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TypeVar

from testbed.errors import MachineError, TestbedError

THREADS_MAX = 32

_Each = TypeVar("_Each")
_Result = TypeVar("_Result")


def on_each(do: Callable[[_Each], _Result], each: Sequence[_Each]) -> list[_Result | TestbedError]:
    """Call `do` with each item in parallel; returns the results or TestbedErrors in the items' order.

    Any other error is a bug of ours and is raised. When it or a KeyboardInterrupt leaves this function, calls
    that have not begun are cancelled, and others are abandoned: they end with their connection, or with the
    process.
    """
    futures: list[Future[_Result | TestbedError]] = [Future() for _ in each]
    waiting: queue.SimpleQueue[tuple[_Each, Future[_Result | TestbedError]]] = queue.SimpleQueue()
    for job in zip(each, futures, strict=True):
        waiting.put(job)

    def work() -> None:
        while True:
            try:
                one, future = waiting.get_nowait()
            except queue.Empty:
                return
            if future.set_running_or_notify_cancel():
                _call(do, one, future)

    for number in range(min(len(each), THREADS_MAX)):
        threading.Thread(target=work, name=f"machine {number}", daemon=True).start()
    try:
        return [future.result() for future in futures]
    finally:
        for future in futures:
            future.cancel()


def _call(do: Callable[[_Each], _Result], one: _Each, future: Future[_Result | TestbedError]) -> None:
    try:
        future.set_result(do(one))
    except TestbedError as error:
        future.set_result(error)
    except BaseException as error:  # noqa: BLE001 - raised by `future.result`
        future.set_exception(error)


def all_or_raise(results: Sequence[_Result | TestbedError]) -> list[_Result]:
    """Return the results if none is an error.

    Otherwise raises MachineError if one of them is a MachineError, else TestbedError, with all messages.
    """
    errors = [result for result in results if isinstance(result, TestbedError)]
    if errors:
        kind = MachineError if any(isinstance(error, MachineError) for error in errors) else TestbedError
        raise kind("; ".join(str(error) for error in errors))
    return [result for result in results if not isinstance(result, TestbedError)]
