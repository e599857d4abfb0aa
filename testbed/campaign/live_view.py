"""`cutset run --live`: starts the process that watches the run (`analysis.live`) and exchanges messages.

The process has its own session and priority. Messages that do not fit into its pipe are dropped, and the run
never waits for it. If it fails, one line reports it and the run continues.
"""

import contextlib
import json
import os
import queue
import signal
import subprocess
import threading
import time
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Self

from experiments import child_processes
from experiments.backend_names import LOCAL
from experiments.child_python import python_command
from topologies.errors import InputError

if TYPE_CHECKING:
    from experiments.records.rundir import RunDirectory
    from testbed.campaign.texts.progress import Follower
    from testbed.run_selection import RunSelection

FORWARDED = frozenset({"phase", "running", "change", "problem"})
READY_TIMEOUT_S = 20.0
"""How long to wait for it before the run starts; a slower one starts during the run."""
REST_TIMEOUT_S = 6.0
"""How long to wait until it has read the last records."""
REPORT_TIMEOUT_S = 22.0
"""How long to wait until open pages show the report: longer than the process itself waits for them."""
END_TIMEOUT_S = 15.0
"""How long to wait until it has answered the pages' requests and ended."""
LOG = "live.log"
OPTION = "--live"


def check_watchable(chosen: "RunSelection", *, resumed: bool) -> None:
    """Refuse --live for many runs, or for one that is not on this machine. Raises InputError."""
    if chosen.is_sweep or resumed:
        raise InputError(OPTION, None, "", "shows one run, not a sweep or a repetition")
    if chosen.backend != LOCAL:
        raise InputError(OPTION, None, "", "needs a run on this machine")


class LiveWatcher:
    """The process that watches a run: a context manager that ends the process and its children on exit."""

    def __init__(self, run: "RunDirectory") -> None:
        self._run = run
        self._received: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._process: subprocess.Popen[bytes] | None = None
        self._ending = False
        self._pages = 0
        self._gone = False  # it reported that it can show nothing more

    def __enter__(self) -> Self:
        with (self._run.logs / LOG).open("wb") as log:
            self._process = child_processes.start(
                python_command("analysis.live", str(self._run.path.resolve())),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,  # Ctrl-C reaches only us, and we end it
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        os.set_blocking(self._process.stdin.fileno(), False)
        threading.Thread(
            target=self._listen, args=(self._process.stdout,), name="watching", daemon=True
        ).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process = self._process
        if process is None:
            return
        self._ending = True
        self._send({"do": "end"})
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0 if kind is not None else END_TIMEOUT_S)
        with contextlib.suppress(ProcessLookupError):  # the whole session
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()

    def await_ready(self, follow: "Follower") -> None:
        """Wait until it has started, for a bounded time: later the run needs the processors."""
        self._await("ready", READY_TIMEOUT_S, follow)

    def exchange(self, message: dict[str, Any], follow: "Follower") -> None:
        """Forward a message of the run, and show what arrived from the process since."""
        if message.get("did") in FORWARDED:
            self._send(message)
        with contextlib.suppress(queue.Empty):
            while True:
                self._show(self._received.get_nowait(), follow)

    def read_rest(self, follow: "Follower") -> None:
        """Let it read the last records, for a bounded time."""
        self._send({"do": "rest"})
        self._await("read", REST_TIMEOUT_S, follow)

    def show_report(self, verdict: str, follow: "Follower") -> None:
        """Turn open pages into the report."""
        self._send({"do": "report", "path": str(self._run.report_html.resolve()), "verdict": verdict})
        if self._pages:
            self._await("shown", REPORT_TIMEOUT_S, follow)

    def _await(self, did: str, timeout_s: float, follow: "Follower") -> None:
        deadline_s = time.monotonic() + timeout_s
        while not self._gone and (left_s := deadline_s - time.monotonic()) > 0:
            try:
                message = self._received.get(timeout=left_s)
            except queue.Empty:
                return
            self._show(message, follow)
            if message["did"] == did:
                return

    def _show(self, message: dict[str, Any], follow: "Follower") -> None:
        self._pages = message.get("pages", self._pages)
        self._gone = self._gone or message["did"] == "unwatched"
        follow(message)

    def _send(self, message: dict[str, Any]) -> None:
        if self._process is None or self._process.stdin is None:
            return
        # The pipe is full or broken: it does not listen (any more), which its end or its silence shows.
        with contextlib.suppress(OSError):
            os.write(self._process.stdin.fileno(), json.dumps(message).encode() + b"\n")

    def _listen(self, said: IO[bytes]) -> None:
        for line in said:
            with contextlib.suppress(ValueError):  # a line that was cut off when it died
                self._received.put(json.loads(line))
        if not self._ending:
            text = f"the live view ended by itself: see logs/{LOG}"
            self._received.put({"did": "unwatched", "text": text})
