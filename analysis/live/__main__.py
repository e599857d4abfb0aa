"""`python -m analysis.live RUN_DIRECTORY`: watches a run; started and spoken to by `cutset run --live`.

Takes JSON lines on standard input: the run's own messages (`did`), and what to do (`do`):

    captured   nothing is written any more: read the rest, say "read", and let Spark go
    report     the report stands at `path`, with `verdict`: open pages turn into it; say "shown" then
    end        let pages go and end; so does the end of input

and tells JSON lines on standard output: `watching` (url), `ready` (to read: what takes long is done),
`timelines` (figures, twice a second), `read`, `shown`, and `unwatched` (text) when it can show nothing more.
Whatever happens here, the run does not notice: it waits a while for "ready", and from there on this session
stands back. Not before: Spark gives its Python ten seconds to start, which one that stands back on a busy
machine never keeps.
"""

import contextlib
import json
import os
import queue
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from analysis.live.priority import stand_back
from analysis.live.query import LiveRead
from analysis.live.recorded import RecordedRead
from analysis.live.server import Server
from analysis.live.view import View
from analysis.session import leave_nothing
from experiments.files.scratch import scratch
from experiments.records.rundir import RunDirectory

TICK_S = 0.5
LEAVE_TIMEOUT_S = 20.0
Json = dict[str, Any]


def main(path: str) -> int:
    """Watch the run in this directory until told to end; returns the exit code."""
    told: queue.SimpleQueue[Json | None] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(told,), name="told", daemon=True).start()
    view = View(RunDirectory(Path(path)))
    server = Server(view.board)
    server.start()
    _tell("watching", url=server.url)
    with scratch("cutset-live-", Path(tempfile.gettempdir())) as work:
        reading = _reading(view, work)
        reading.start()
        while (message := _next(told)) is not None:
            match message.get("do"):
                case "captured":
                    reading.finish()
                    view.board.tell({"ended": True})
                case "report":
                    server.report = Path(message["path"])
                    view.board.tell({"report": message["path"], "verdict": message["verdict"]})
                    server.wait_until_left(LEAVE_TIMEOUT_S)
                    _tell("shown")
                case "end":
                    break
                case _:
                    view.hear(message)
                    _tell_figures(view, reading)
        server.stop()
    leave_nothing()
    # Java and the workers end with their pipes; waiting for them would hold up the command.
    os._exit(0)


def _reading(view: View, work: Path) -> LiveRead | RecordedRead:
    """What reads the run: of programs, what their clients write down; else packets, through Spark."""
    if view.is_of_programs:
        return RecordedRead(
            view.run, view.metadata, view.take_batches, on_ready=_get_ready, on_end=lambda: _tell("read")
        )
    return LiveRead(view.run, view.take, work, on_ready=_get_ready, on_end=lambda: _tell("read"))


def _get_ready() -> None:
    """Tell that what takes long is done; from here on the processors belong to the run."""
    stand_back()
    _tell("ready")


def _listen(told: "queue.SimpleQueue[Json | None]") -> None:
    for line in sys.stdin:
        with contextlib.suppress(ValueError):  # a line that did not fit into the pipe
            told.put(json.loads(line))
    told.put(None)


def _next(told: "queue.SimpleQueue[Json | None]") -> Json | None:
    """The next message; {} when a while has passed without one, None at the end of input."""
    try:
        return told.get(timeout=TICK_S)
    except queue.Empty:
        return {}


def _tell(did: str, **fields: Any) -> None:
    with contextlib.suppress(BrokenPipeError):  # nobody listens any more: the end of input follows
        sys.stdout.write(json.dumps({"did": did, **fields}) + "\n")
        sys.stdout.flush()


def _tell_figures(view: View, reading: LiveRead | RecordedRead) -> None:
    if reading.ended:
        return
    status = view.status()
    view.board.tell(status)
    if status.get("behind_s") is not None:
        _tell("timelines", disturbed=view.disturbances(), pages=view.board.pages, **status)
    if reading.failure is not None:
        reading.ended = True
        text = f"the live timelines ended: {reading.failure}"
        view.board.tell({"failed": text})
        _tell("unwatched", text=text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
