"""Functions of the launcher's children: they enter their host, report, and open files that outlive them."""

import contextlib
import json
import os
import signal
import socket
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from node.core.deliveries import check_file_header, whole_bytes
from node.core.machine import Log
from node.core.specification import NodeSpec
from node.tcp.libc import enter_network, libc

PR_SET_PDEATHSIG = 1  # prctl(2)
PR_SET_NAME = 15
NAME_BYTES_MAX = 15


def enter_control_groups(entries: Iterable[str]) -> None:
    """Move the calling process to the control groups with these files. Raises OSError."""
    for entry in entries:
        Path(entry).write_text("0")


def enter_host(spec: NodeSpec) -> None:
    """Enter the host's network namespace, set the process name, and die with the launcher."""
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    libc.prctl(PR_SET_NAME, spec.name.encode()[:NAME_BYTES_MAX])
    if spec.netns is not None:
        enter_network(spec.netns)


def send_to_launcher(control: socket.socket, name: str, message: Mapping[str, Any]) -> None:
    """Send a message of this node. If the launcher does not read, the message is lost: progress is cumulative
    and the log has the rest.
    """
    with contextlib.suppress(BlockingIOError, ConnectionError):
        control.send(json.dumps({**message, "name": name}, separators=(",", ":")).encode())


def log_line(line: Log) -> bytes:
    """Encode a line of a log with the current time."""
    record = {"t_ns": time.time_ns(), "level": line.level, "event": line.event, **line.fields}
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def open_append(path: str | None, header: bytes = b"") -> Any:
    """Open a file for appending, unbuffered; a torn record that a killed process left is cut off."""
    target = Path(path or os.devnull)
    if header and target.is_file():
        data = target.read_bytes()[: len(header)]
        if len(data) == len(header):
            check_file_header(data)
        os.truncate(target, whole_bytes(target.stat().st_size))
    file = target.open("ab", buffering=0)
    if header and target.is_file() and target.stat().st_size == 0:
        file.write(header)
    return file
