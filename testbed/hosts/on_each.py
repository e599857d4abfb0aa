"""The same for many machines at once, in threads: a machine that is slow or broken holds up no other."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from testbed.errors import MachineError, TestbedError

THREADS_MAX = 32

_Each = TypeVar("_Each")
_Result = TypeVar("_Result")


def on_each(do: Callable[[_Each], _Result], each: Sequence[_Each]) -> list[_Result | TestbedError]:
    """`do` with each of these, at the same time; in their order what it returned, or the error it raised.

    Any other error is a bug of ours and is raised.
    """

    def result(one: _Each) -> _Result | TestbedError:
        try:
            return do(one)
        except TestbedError as error:
            return error

    if not each:
        return []
    with ThreadPoolExecutor(min(len(each), THREADS_MAX), thread_name_prefix="machine") as pool:
        return list(pool.map(result, each))


def all_or_raise(results: Sequence[_Result | TestbedError]) -> list[_Result]:
    """The results if there is no error among them.

    Raises MachineError if a machine cannot do it, otherwise TestbedError, with the words of all.
    """
    errors = [result for result in results if isinstance(result, TestbedError)]
    if errors:
        kind = MachineError if any(isinstance(error, MachineError) for error in errors) else TestbedError
        raise kind("; ".join(str(error) for error in errors))
    return [result for result in results if not isinstance(result, TestbedError)]
