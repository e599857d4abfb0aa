"""Functions that run inside hosts' network namespaces.

A thread can enter a network namespace (setns(2)); processes that it starts and sockets that it opens belong
there. Hosts are therefore configured from short-lived threads, without a process for each namespace.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from node.tcp.libc import enter_network
from testbed.errors import TestbedError

_Result = TypeVar("_Result")


def write_settings(settings: Mapping[str, str], *, optional: frozenset[str] = frozenset()) -> None:
    """Write sysctls in the calling thread's network namespace, which /proc/sys/net refers to.

    optional: settings that may be missing. Raises TestbedError if one cannot be written.
    """
    for name, value in settings.items():
        path = Path("/proc/sys") / name
        if name in optional and not path.exists():
            continue
        try:
            path.write_text(value)
        except OSError as error:
            raise TestbedError(f"cannot set {name} to {value}: {error.strerror}") from error


def in_each_namespace(
    namespaces: Mapping[str, str],
    hosts: Iterable[str],
    work: Callable[[str], _Result],
    check: Callable[[], None] = lambda: None,
) -> dict[str, _Result]:
    """Call `work(host)` inside the namespace of each host, in parallel on all processors.

    check: called after each host; may raise to abort.
    """

    def task(host: str) -> _Result:
        try:
            enter_network(namespaces[host])
        except OSError as error:
            raise TestbedError(str(error)) from error
        return work(host)

    results, hosts = {}, list(hosts)
    with ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="netns") as pool:
        for host, result in zip(hosts, pool.map(task, hosts), strict=True):
            results[host] = result
            check()
    return results
