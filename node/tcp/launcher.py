"""Forks and supervises node processes: `python -m node.tcp.launcher`.

The launcher imports all modules of nodes once; then a node costs one fork. It runs no event loop and no
thread, so that forking is safe. It reads JSON lines on standard input,

  {"do": "start", "node": NodeSpec}       fork a process; again after its end to restart it
  {"do": "go", "start_ns": T, "late_us": L}  drivers begin at that CLOCK_REALTIME instant, L after time 0
  {"do": "stop_drivers"}                  drivers publish nothing new
  {"do": "give_up", "process": N}         the operator declares that it will not come back
  {"do": "clock", "clock": WrongClock}    its clock by CLOCK_REALTIME from now on (`node.core.wrong_clock`)
  {"do": "finish"}                        all nodes flush, close and exit
  {"do": "took", "descriptor": D}         the receiver of "suspends" has a copy; it is closed here

A node with a "program" is a process that supervises that program (`node.programs`), any other one runs a
machine. All requests but "start" go to all nodes, or with a "name" to one (a restarted driver). Each node
leads a process group, so that signals can be sent to its pid without waiting for the launcher. The launcher
writes JSON lines on standard output, each with the node's name: started (pid), ready, progress (published and
delivered: the last sequence number by stream; silent: nothing more will be published), suspends (descriptor:
here, the listener for suspended calls, `node.tcp.sync_filter`), failed (problem: where and what its code
raised), exited (code or signal, time_ns). The end of standard input ends all nodes and the launcher.
"""

import gc
import json
import os
import selectors
import signal
import socket
import sys
import time
import traceback
from dataclasses import dataclass
from typing import Any

from node.programs.minder import run_program
from node.systems import load_machines
from node.tcp.child import enter_control_groups
from node.tcp.process import MESSAGE_BYTES_MAX, run_node
from node.tcp.sync_filter import suspend_syncs

READ_BYTES = 1 << 20
LINE_BYTES_MAX = 8 << 20
COULD_NOT_RUN = 70  # EX_SOFTWARE of sysexits.h


@dataclass(slots=True)
class ChildProcess:
    """A running node process."""

    name: str
    pid: int
    control: socket.socket


class Launcher:
    """The children, and the loop that waits for them and for requests."""

    def __init__(self, requests_fd: int, reports_fd: int) -> None:
        self._requests_fd = requests_fd
        self._reports_fd = reports_fd
        self._children: dict[str, ChildProcess] = {}
        self._line = b""
        self._listeners: set[int] = (
            set()
        )  # not yet taken by the receiver; open, so that their numbers are not reused
        self._selector = selectors.DefaultSelector()

    def run(self) -> None:
        """Serve requests until standard input ends."""
        wakeup, notify = os.pipe()
        for end in (wakeup, notify):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(notify, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._selector.register(self._requests_fd, selectors.EVENT_READ, "asked")
        self._selector.register(wakeup, selectors.EVENT_READ, "ended")
        try:
            while True:
                for key, _ in self._selector.select():
                    if key.data == "ended":
                        os.read(wakeup, READ_BYTES)
                        self._reap()
                    elif key.data == "asked":
                        if not self._read_requests():
                            return
                    elif key.data in self._children:
                        self._forward(self._children[key.data])
        finally:
            for child in self._children.values():
                os.killpg(child.pid, signal.SIGKILL)

    def _read_requests(self) -> bool:
        data = os.read(self._requests_fd, READ_BYTES)
        *lines, self._line = (self._line + data).split(b"\n")
        if len(self._line) > LINE_BYTES_MAX:
            raise ValueError(f"a line of more than {LINE_BYTES_MAX} bytes on standard input")
        for line in lines:
            self._execute(json.loads(line))
        return bool(data)

    def _execute(self, message: dict[str, Any]) -> None:
        match message["do"]:
            case "start":
                self._fork(message["node"])
            case "took":
                self._listeners.remove(message["descriptor"])
                os.close(message["descriptor"])
            case _:
                data = json.dumps(message).encode()
                for child in self._children.values():
                    if message.get("name", child.name) == child.name:
                        self._send(child, data)

    def _send(self, child: ChildProcess, data: bytes) -> None:
        try:
            child.control.send(data)
        except (BlockingIOError, ConnectionError):
            return  # it is stopped or dying; its end will be reported

    def _fork(self, given: dict[str, Any]) -> None:
        name = given["name"]
        if name in self._children:
            raise ValueError(f"{name} runs already")
        load_machines(given["system"])
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        pid = os.fork()
        if pid == 0:
            ours.close()
            self._run_child(given, theirs)
        os.setpgid(pid, pid)  # before its pid is reported
        theirs.close()
        ours.setblocking(False)
        self._children[name] = ChildProcess(name, pid, ours)
        self._selector.register(ours, selectors.EVENT_READ, name)
        self._report({"did": "started", "name": name, "pid": pid})

    def _run_child(self, given: dict[str, Any], control: socket.socket) -> None:
        """Run the node in the child; never return. Errors go to standard error, the run's own log."""
        code = COULD_NOT_RUN
        try:
            os.setpgid(0, 0)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            self._selector.close()
            for child in self._children.values():
                child.control.close()
            for listener in self._listeners:
                os.close(listener)
            nothing = os.open(os.devnull, os.O_RDWR)
            os.dup2(nothing, self._requests_fd)
            os.dup2(nothing, self._reports_fd)
            if given.get("slow_disk"):
                _suspend_syncs(control)
            if given.get("program") is None:  # a minder stays outside its program's groups
                enter_control_groups(given.get("control_groups", ()))
            code = (run_node if given.get("program") is None else run_program)(given, control)
        except BaseException:  # noqa: BLE001 - the last place before the process ends
            sys.stderr.write(f"{given.get('name')}: {traceback.format_exc()}")
            sys.stderr.flush()
        finally:
            os._exit(code)

    def _forward(self, child: ChildProcess) -> bool:
        """Forward one message of a child to standard output; return False if there is none."""
        try:
            data, descriptors, _, _ = socket.recv_fds(child.control, MESSAGE_BYTES_MAX, 1)
        except (BlockingIOError, ConnectionError):
            return False
        if descriptors:
            self._listeners.update(descriptors)
            self._report({"did": "suspends", "name": child.name, "descriptor": descriptors[0]})
            return True
        if data:
            self._write(data)
            return True
        self._unregister(child)
        return False

    def _unregister(self, child: ChildProcess) -> None:
        """Stop reading from a child. Idempotent: its socket and its process may end in either order."""
        if child.name in {key.data for key in self._selector.get_map().values()}:
            self._selector.unregister(child.control)

    def _reap(self) -> None:
        """Report ended children, after forwarding their last messages."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            child = next(child for child in self._children.values() if child.pid == pid)
            time_ns = time.time_ns()
            while self._forward(child):
                pass
            self._unregister(child)
            child.control.close()
            del self._children[child.name]
            code = os.waitstatus_to_exitcode(status)
            ended = {"code": code, "signal": None} if code >= 0 else {"code": None, "signal": -code}
            self._report({"did": "exited", "name": child.name, **ended, "time_ns": time_ns})

    def _report(self, message: dict[str, Any]) -> None:
        self._write(json.dumps(message, separators=(",", ":")).encode())

    def _write(self, line: bytes) -> None:
        data = memoryview(line + b"\n")
        while data:
            data = data[os.write(self._reports_fd, data) :]


def _suspend_syncs(control: socket.socket) -> None:
    """Suspend the syncs of the calling process and send the listener to the launcher. Raises OSError."""
    listener = suspend_syncs()
    socket.send_fds(control, [b"listener"], [listener])
    os.close(listener)


def main() -> None:
    """Fork on request until standard input ends. Ctrl-C is left to the caller: the nodes end in order."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.collect()
    gc.freeze()  # imported modules stay shared between the children
    Launcher(sys.stdin.fileno(), sys.stdout.fileno()).run()


if __name__ == "__main__":
    main()
