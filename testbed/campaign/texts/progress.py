"""Progress of one run on standard error: a live line on a terminal, plain lines elsewhere.

Both show the phase, elapsed and total time, events per second at a client, and problems and changes of links
and processes as they happen. They only read the run's messages (`testbed.execution.record`).
"""

import sys
import threading
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Self

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn

from experiments.files.sanitize import printable, printable_lines
from testbed.campaign.printable_streams import unfiltered
from testbed.campaign.texts.shipping_progress import QUIET_STATES, MachineFiles, ShippingProgress

LINE_PERIOD_S = 5.0
RATE_WINDOW_S = 3.0
PHASES = {
    "building": "building the network and starting the nodes",
    "running": "running",
    "draining": "draining",
    "collected": "collected",
}


@dataclass(slots=True)
class RunSituation:
    """The state of one run, from its messages so far."""

    phase: str = "planned"
    zero_ns: int | None = None
    duration_s: float = 0.0
    events_per_s: int = 0
    now_ns: int | None = None  # set if the run does not use this machine's time
    watched: dict[str, Any] = field(default_factory=dict)  # the latest message of the live timelines
    shipped: ShippingProgress = field(default_factory=ShippingProgress)
    _seen: set[tuple[Any, ...]] = field(default_factory=set)

    def take(self, message: dict[str, Any]) -> str | None:
        """Update from a message; return a line to show, or None if the message needs no line."""
        match message.get("did"):
            case "phase":
                self.phase = message["phase"]
            case "running":
                self.zero_ns, self.duration_s = message["zero_ns"], message["duration_us"] / 1e6
                return f"all nodes are ready: running for {self.duration_s:g} s"
            case "progress":
                self.events_per_s = message["events_per_s"]
                self.now_ns = message.get("now_ns")
            case "problem":
                return f"problem: {message['text']}"
            case "starved" if self.zero_ns is not None:
                at_s = (message["time_ns"] - self.zero_ns) / 1e9
                return f"{at_s:6.1f} s  {message['process']} was killed: it needed more memory than its limit"
            case "change":
                return self._change(message)
            case "watching":
                return f"live at {message['url']}"
            case "timelines":
                self.watched = message
            case "unwatched":
                self.watched = {}
                return str(message["text"])
            case "shipping":
                return self.shipped.take(message)
        return None

    def elapsed_s(self, now_ns: int) -> float:
        """Seconds since time 0, between 0 and the duration."""
        if self.zero_ns is None:
            return 0.0
        passed_ns = (now_ns if self.now_ns is None else self.now_ns) - self.zero_ns
        return min(max(0.0, passed_ns / 1e9), self.duration_s)

    def text(self, now_ns: int) -> str:
        """Return the state in one line."""
        if self.phase != "running":
            return PHASES.get(self.phase, self.phase)
        elapsed = f"{self.elapsed_s(now_ns):.0f} of {self.duration_s:.0f} s"
        return f"running  {elapsed:>12}  {self.events_per_s:>9,} events/s{self._seen_live()}"

    def _seen_live(self) -> str:
        """Return the latency and the disturbances by the clients' records, and the age of both."""
        if not self.watched:
            return ""
        p95_ms, behind_s = self.watched["p95_ms"], self.watched["behind_s"]
        latency = f"  p95 {p95_ms:>7,.1f} ms" if p95_ms is not None else ""
        disturbed = ", ".join(self.watched["disturbed"]) or "no fault"
        return f"{latency}  {disturbed}  {behind_s:.1f} s behind"

    def _change(self, message: dict[str, Any]) -> str | None:
        """Return the line of a change; both directions of a link that change at once share one line."""
        what = message.get("link") or message.get("process")
        became = message.get("state") or message.get("action")
        values = f" {message['values']}" if message.get("values") else ""
        key = (message["fault"], what, became, values, message["requested_ns"])
        if key in self._seen or self.zero_ns is None:
            return None
        self._seen.add(key)
        at_s = (message["requested_ns"] - self.zero_ns) / 1e9
        return f"{at_s:6.1f} s  {message['fault']}: {what} {became}{values}"


class Follower(AbstractContextManager["Follower"]):
    """Display of a run: a context manager, called with each message.

    Plain lines: one for each phase and event, and at most one every LINE_PERIOD_S in between.
    """

    _shown_s = 0.0

    def __init__(self, terse: str | None = None) -> None:
        """terse: the title of a run; then only problems and permanent lines are shown."""
        self._terse = terse
        self._situation = RunSituation()
        self._one_at_a_time = threading.Lock()

    def __call__(self, message: dict[str, Any]) -> None:
        """Update the display from a message; {} only reports that time has passed.

        Called from any thread: each machine that ships files reports from its own thread.
        """
        with self._one_at_a_time:
            self._take(message)

    def __exit__(self, *_: object) -> None:
        """Leave all lines as they are."""

    def _take(self, message: dict[str, Any]) -> None:
        line = self._situation.take(message)
        if self._terse is not None:
            if message.get("did") == "problem":
                self.show(f"{self._terse}: {line}")
            return
        if line is not None:
            self.say(line)
        new_phase = message.get("did") == "phase" and self._situation.phase != "running"
        passing = self._situation.phase == "running" and time.monotonic() - self._shown_s >= LINE_PERIOD_S
        if new_phase or (passing and self._situation.zero_ns is not None):
            self._shown_s = time.monotonic()
            self.say(self._situation.text(time.time_ns()))
        shipping = self._situation.shipped.text() if self._situation.phase != "running" else ""
        if shipping and time.monotonic() - self._shown_s >= LINE_PERIOD_S:
            self._shown_s = time.monotonic()
            self.say(shipping)

    def say(self, text: str) -> None:
        """Show the current step, for example of the analysis."""
        if self._terse is None:
            self.show(text)

    def show(self, text: str) -> None:
        """Show a permanent line."""
        click.echo(text, err=True)


class LiveFollower(Follower):
    """A live line, with permanent lines above it."""

    def __init__(self, terse: str | None = None) -> None:
        super().__init__(terse)
        self._progress = Progress(
            SpinnerColumn(),
            BarColumn(bar_width=24),
            TextColumn("{task.description}", markup=False),
            console=Console(file=unfiltered(sys.stderr)),  # it moves the cursor
            transient=True,
            speed_estimate_period=RATE_WINDOW_S,
        )
        self._task = self._progress.add_task("starting", total=None)
        self._machine_tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def _take(self, message: dict[str, Any]) -> None:
        line = self._situation.take(message)
        if line is not None and (self._terse is None or message.get("did") == "problem"):
            self.show(line)
        if message.get("did") == "shipping":
            self._show_machine(self._situation.shipped.machines[message["machine"]])
            return
        now_ns = time.time_ns()
        running = self._situation.phase == "running"
        self._progress.update(
            self._task,
            description=self._described(self._situation.text(now_ns)),
            total=self._situation.duration_s if running else None,
            completed=self._situation.elapsed_s(now_ns) if running else 0,
        )

    def say(self, text: str) -> None:
        """Show the current step; see Follower."""
        self._progress.update(self._task, description=self._described(text), total=None)

    def show(self, text: str) -> None:
        """Show a permanent line; see Follower."""
        self._progress.console.print(printable_lines(text), markup=False, highlight=False)

    def _show_machine(self, files: MachineFiles) -> None:
        """Show a bar for each machine whose files are still awaited."""
        task = self._machine_tasks.get(files.machine)
        if task is None:
            task = self._machine_tasks[files.machine] = self._progress.add_task("", total=None)
        shown = files.state not in QUIET_STATES
        self._progress.update(task, total=files.of_bytes or None, completed=files.bytes, visible=shown)
        rate_bytes_per_s = self._progress.tasks[task].speed or 0.0
        self._progress.update(task, description=self._described(files.text(rate_bytes_per_s)))

    def _described(self, text: str) -> str:
        return printable(text if self._terse is None else f"{self._terse}  {text}")


def follower(terse: str | None = None) -> Follower:
    """Return the follower for this standard error.

    terse: the name of a run of a sweep. Its follower shows only problems, and on a terminal also its
    progress.
    """
    return (LiveFollower if sys.stderr.isatty() else Follower)(terse)
