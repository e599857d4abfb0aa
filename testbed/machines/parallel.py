"""Does the same on many machines at once, in threads: a slow or broken machine delays no other.

Nor does it delay an interrupt: the threads are daemons, which are not awaited when the command ends.
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
    """Call `do` with each of these, at the same time; returns in their order the results, or the errors that
    were raised.

    Any other error is a bug of ours and is raised. When that or a KeyboardInterrupt leaves this function,
    calls that have not begun never do, and others are abandoned: they end with their connection, or with the
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
                _carry_out(do, one, future)

    for number in range(min(len(each), THREADS_MAX)):
        threading.Thread(target=work, name=f"machine {number}", daemon=True).start()
    try:
        return [future.result() for future in futures]
    finally:
        for future in futures:
            future.cancel()


def _carry_out(do: Callable[[_Each], _Result], one: _Each, future: Future[_Result | TestbedError]) -> None:
    try:
        future.set_result(do(one))
    except TestbedError as error:
        future.set_result(error)
    except BaseException as error:  # noqa: BLE001 - raised where the result is waited for
        future.set_exception(error)


def all_or_raise(results: Sequence[_Result | TestbedError]) -> list[_Result]:
    """The results if there is no error among them.

    Raises MachineError if a machine cannot do it, otherwise TestbedError, with the messages of all.
    """
    errors = [result for result in results if isinstance(result, TestbedError)]
    if errors:
        kind = MachineError if any(isinstance(error, MachineError) for error in errors) else TestbedError
        raise kind("; ".join(str(error) for error in errors))
    return [result for result in results if not isinstance(result, TestbedError)]
