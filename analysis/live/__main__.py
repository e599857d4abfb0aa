"""`python -m analysis.live RUN_DIRECTORY`: watches a run. `cutset run --live` starts it and sends requests.

It reads JSON lines from standard input: the run's own messages (`did`), and requests (`do`):

    rest       the run has ended: read the rest of the records, and send "read"
    report     the report is at `path`, with `verdict`: open pages load it; then send "shown"
    end        disconnect pages and exit; the end of input does the same

It writes JSON lines to standard output: `watching` (url), `ready` (it has started), `timelines`
(figures, twice per second), `read`, `shown`, and `unwatched` (text) when it can show no further data.

Errors here do not affect the run: it waits for "ready" for a limited time.
"""

import contextlib
import json
import os
import queue
import sys
import threading
from pathlib import Path
from typing import Any

from analysis.live.recorded import LiveRead
from analysis.live.server import PageServer
from analysis.live.view import LiveView
from experiments.records.rundir import RunDirectory

TICK_S = 0.5
LEAVE_TIMEOUT_S = 20.0
NICE = 5
Json = dict[str, Any]


def main(path: str) -> int:
    """Watch the run in this directory until the request to end. Does not return: ends the process."""
    _lower_priority()  # before other threads begin: each inherits it
    messages: queue.SimpleQueue[Json | None] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(messages,), name="messages", daemon=True).start()
    view = LiveView(RunDirectory(Path(path)))
    server = PageServer(view.board)
    server.start()
    _send("watching", url=server.url)
    reading = LiveRead(
        view.run, view.metadata, view.take, on_ready=lambda: _send("ready"), on_end=lambda: _send("read")
    )
    reading.start()
    while (message := _next(messages)) is not None:
        match message.get("do"):
            case "rest":
                reading.finish()
                view.board.update({"ended": True})
            case "report":
                server.report = Path(message["path"])
                view.board.update({"report": message["path"], "verdict": message["verdict"]})
                server.wait_until_left(LEAVE_TIMEOUT_S)
                _send("shown")
            case "end":
                break
            case _:
                view.handle(message)
                _send_figures(view, reading)
    server.stop()
    os._exit(0)  # without waiting for the threads that serve pages


def _lower_priority() -> None:
    """Use mostly idle processor time: of this process, and of its session if the kernel groups sessions
    (sched(7), "The autogroup feature").
    """
    with contextlib.suppress(OSError):  # kernels without autogroups have no such file
        Path("/proc/self/autogroup").write_text(str(NICE))
    for task in Path("/proc/self/task").iterdir():  # imported libraries have begun threads
        thread = int(task.name)
        os.setpriority(os.PRIO_PROCESS, thread, max(NICE, os.getpriority(os.PRIO_PROCESS, thread)))


def _listen(messages: "queue.SimpleQueue[Json | None]") -> None:
    for line in sys.stdin:
        with contextlib.suppress(ValueError):  # a line that did not fit into the pipe
            messages.put(json.loads(line))
    messages.put(None)


def _next(messages: "queue.SimpleQueue[Json | None]") -> Json | None:
    """Return the next message; {} after TICK_S without one, None at the end of input."""
    try:
        return messages.get(timeout=TICK_S)
    except queue.Empty:
        return {}


def _send(did: str, **fields: Any) -> None:
    with contextlib.suppress(BrokenPipeError):  # the reader has ended; the end of input follows
        sys.stdout.write(json.dumps({"did": did, **fields}) + "\n")
        sys.stdout.flush()


def _send_figures(view: LiveView, reading: LiveRead) -> None:
    if reading.ended:
        return
    status = view.status()
    view.board.update(status)
    if status.get("behind_s") is not None:
        _send("timelines", disturbed=view.disturbances(), pages=view.board.pages, **status)
    if reading.failure is not None:
        reading.ended = True
        text = f"the live timelines ended: {reading.failure}"
        view.board.update({"failed": text})
        _send("unwatched", text=text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
