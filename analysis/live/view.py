"""The live view of a run: combines the run's own messages and its events on one board.

The run's messages (phases, changes of links and processes, problems) give the bands and lines. The
records of clients (`recorded`) give the timelines. The delay of the view is the current time minus the time
up to which all clients' records are shown.

Charts are created without data; the page fills in their series.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from analysis.live.audience import RequiredDeliveries
from analysis.live.board import LiveBoard
from analysis.live.timelines import EventBatch, LiveTimelines, TimelineUpdate
from analysis.pages.charting.chart_model import Axis, Chart, ChartSeries
from analysis.pages.charting.chart_page import as_json
from analysis.pages.report.charts.bands import FaultPeriod, bands
from analysis.pages.report.charts.charts import TIME, TOGETHER
from analysis.pages.report.run_reader import AnalysedRun
from analysis.timelines.liveness import planned_presence
from analysis.timelines.run_metadata import RunMetadata, read_metadata
from analysis.timelines.run_window import MARGIN_NS
from experiments.records.observations import ChangeRecord
from experiments.records.run_record import RunRecord, Times
from experiments.records.rundir import RunDirectory
from topologies.drawing.palette import colour_of, dash_of

Json = dict[str, Any]
LINES_MAX = 500


class LiveView:
    """The live view of one run, updated by two threads: one with messages, another with records."""

    def __init__(self, run: RunDirectory, now_ns: Callable[[], int] = time.time_ns) -> None:
        self.run = run
        record = run.read_run()
        self._record = replace(record, changes=(), times=Times())
        self.metadata = self._metadata()
        self._now_ns = now_ns
        self._lock = threading.Lock()
        self._timelines: LiveTimelines | None = None
        self._early: list[EventBatch] = []
        self._latest = TimelineUpdate()
        self._lines = 0
        self.board = LiveBoard(_fixed(run, record))
        self.board.update({"phase": "starting", "bands": []})

    def handle(self, message: Json) -> None:
        """Take one of the run's progress messages."""
        with self._lock:
            match message.get("did"):
                case "running":
                    self._record = replace(self._record, times=Times(zero_ns=message["zero_ns"]))
                    self._timelines = LiveTimelines(
                        self._metadata(), RequiredDeliveries(self.run, self.metadata)
                    )
                    self.board.update({"running": True})
                case "phase":
                    self.board.update({"phase": message["phase"]})
                case "change":
                    self._note(message)
                    self.board.update({"bands": [asdict(band) for band in self._bands()]})
                case "problem":
                    self._line(f"problem: {message['text']}")

    def take(self, found: Sequence[EventBatch], newest_ns: Mapping[str, int]) -> None:
        """Take published and delivered batches. newest_ns: the time up to which each host was read."""
        now_ns = self._now_ns()
        # Times in the future are wrong.
        batches = [batch for batch in found if batch.t_ns < now_ns + MARGIN_NS]
        with self._lock:
            if self._timelines is None:
                self._early += batches
                return
            read_ns = {host: min(t_ns, now_ns) for host, t_ns in newest_ns.items()}
            update = self._timelines.take([*self._early, *batches], read_ns)
            self._early = []
            self._latest = update if update.shown_until_ns is not None else self._latest
        self.board.update(self.status(), throughput=update.throughput, latency=update.latency)

    def status(self) -> Json:
        """Return the progress of the run, recent figures, and the delay of the view."""
        zero_ns, update = self._record.times.zero_ns, self._latest
        if zero_ns is None:
            return {}
        now_ns = self._now_ns()
        until_ns = update.shown_until_ns
        return {
            "elapsed_s": round((now_ns - zero_ns) / 1e9, 2),
            "events_per_s": update.events_per_s,
            "p95_ms": update.p95_ms,
            "behind_s": None if until_ns is None else round((now_ns - until_ns) / 1e9, 2),
            "shown_s": None if until_ns is None else round((until_ns - zero_ns) / 1e9, 2),
        }

    def disturbances(self) -> list[str]:
        """Return the labels of the active faults."""
        with self._lock:
            return [band.label for band in self._bands() if band.end_s is None]

    def _line(self, text: str) -> None:
        if self._lines < LINES_MAX:
            self._lines += 1
            self.board.update({}, lines=[text])

    def _note(self, change: Json) -> None:
        applied = ChangeRecord(change["index"], change["requested_ns"], change["applied_ns"])
        self._record = replace(self._record, changes=(*self._record.changes, applied))
        if self._timelines is not None:
            self._timelines.metadata = self._metadata()

    def _metadata(self) -> RunMetadata:
        """Return the run's metadata so far, with the disturbed hosts by the plan."""
        return replace(read_metadata(self._record), disturbed=planned_presence(self._record.plan).disturbed)

    def _bands(self) -> tuple[FaultPeriod, ...]:
        if not self._record.changes:
            return ()
        return bands(AnalysedRun(self._record, {}, (), (), (), (), ()))


def _fixed(run: RunDirectory, record: RunRecord) -> Json:
    plan = record.plan
    return {
        "title": plan.experiment,
        "description": record.request.description,
        "run": run.name,
        "path": str(run.path.absolute()),
        "duration_s": plan.duration_us / 1e6,
        "charts": live_charts([region.name for region in plan.regions], plan.duration_us / 1e6),
    }


def live_charts(regions: Sequence[str], duration_s: float) -> list[dict[str, Any]]:
    """Return the charts of throughput and latency, with an empty series for each region."""
    return [
        as_json(
            Chart(
                key=key,
                title=title,
                x=Axis(TIME, "s", low=0.0, high=duration_s),
                y=axis,
                series=tuple(
                    ChartSeries(name, colour_of(number), (), (), label=name, dash=dash_of(number))
                    for number, name in enumerate(regions)
                ),
                together=TOGETHER,
            )
        )
        for key, title, axis in (
            ("throughput", "Throughput by region", Axis("events/s at one client", "events/s")),
            ("latency", "Latency by origin", Axis("until every client has it, ms", "ms")),
        )
    ]
