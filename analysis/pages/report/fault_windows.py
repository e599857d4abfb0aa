"""Data of the page around faults: the messages behind each point of a plot, and space-time diagrams.

A bin is the time range of one point of a timeline. For each bin around a fault the most informative messages
are embedded, in this order: lost or retransmitted ones, rare ones, those between regions, and a sample of the
routine messages within regions. The page shows how many it lacks, and the command that shows them all. A run
without the table of transfers has no such data, and the page gives the reason.

A diagram of each fault is written as SVG into the run's figures.
"""

import base64
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analysis.capture.time_range import TimeRange
from analysis.jobs import transfers
from analysis.messages.label import label
from analysis.pages.diagram.drawing import diagram_svg
from analysis.pages.diagram.message_selection import DiagramQuery
from analysis.pages.diagram.ranks import Ranks, ranks_of
from analysis.pages.diagram.scene_builder import around_fault, fault_times, figure_name
from analysis.pages.report.charts.bands import bands, fault_label
from analysis.pages.report.run_reader import AnalysedRun
from analysis.schemas import ARRIVED, TRANSFERS
from experiments.files.whole_files import write_whole
from experiments.planned.plan_routes import carriers, hops
from experiments.records.rundir import RunDirectory, run_argument
from topologies.errors import InputError

BEFORE_S, AFTER_S = 1.0, 3.0  # around each start and end of a fault
BINS_MAX = 120
MESSAGES_OF_BIN_MAX = 200
USUAL_OF_BIN_MAX = 20  # limit of routine messages within regions, if there are too many
USUAL_BIN_S = 0.2  # bin width if there is no table of throughput
_PLACES = frozenset({"src", "sport", "dst", "dport", "connection", "stream_offset"})
_COLUMNS = tuple(name for name in TRANSFERS.names if name not in _PLACES)
_OFF_LINKS = -1
DIAGRAMS_MAX = 12  # for the first faults of a run; `cutset diagram` draws any


@dataclass(frozen=True, slots=True)
class FaultWindows:
    """The data that the page embeds; `missing` is the reason if there is none.

    Names and labels are numbered once.
    """

    run: str  # the run's name in commands, quoted for a shell
    bin_s: float
    missing: str = ""
    links: tuple[str, ...] = ()
    hosts: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    bins: list[dict[str, Any]] = field(default_factory=list)
    bins_left_out: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return the fields by name without copying the thousands of rows."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


def moments(run: RunDirectory, record: AnalysedRun) -> FaultWindows:
    """Return the messages around this run's faults."""
    bin_s = next((float(row["bin_s"]) for row in record.throughput), USUAL_BIN_S)
    zero_ns = record.run.times.zero_ns
    named = shlex.quote(run_argument(run.path))
    if zero_ns is None or not run.table("transfers").is_dir():
        missing = (
            "this analysis has no table of them, cutset analyze writes it"
            if record.captured
            else "no packets were captured"
        )
        return FaultWindows(named, bin_s, missing)
    numbers = _bins(record, bin_s)
    links = tuple(link.name for link in record.wan_links)
    made = FaultWindows(named, bin_s, "", links, bins_left_out=max(0, len(numbers) - BINS_MAX))
    collector = _Collector(made, record, int(zero_ns))
    for first, end in _joined(numbers[:BINS_MAX]):
        times = TimeRange(zero_ns + round(first * bin_s * 1e9), zero_ns + round(end * bin_s * 1e9))
        collector.take(transfers.read(run, times, _COLUMNS), range(first, end))
    return replace(made, hosts=list(collector.hosts), labels=list(collector.labels))


def _bins(record: AnalysedRun, bin_s: float) -> list[int]:
    """Return the numbers of the bins around the faults, those of the first faults first."""
    edges = [at_s for band in bands(record) for at_s in (band.start_s, band.end_s) if at_s is not None]
    found: dict[int, None] = {}
    for at_s in sorted({*edges, *fault_times(record).values()}):
        first, last = int(max(0.0, at_s - BEFORE_S) / bin_s + 1e-6), int((at_s + AFTER_S) / bin_s)
        found |= dict.fromkeys(range(first, last + 1))
    return list(found)


def _joined(numbers: Sequence[int]) -> Iterable[tuple[int, int]]:
    """Yield ranges of consecutive bins."""
    ordered = np.sort(numbers)
    for run in np.split(ordered, np.flatnonzero(np.diff(ordered) != 1) + 1):
        if run.size:
            yield int(run[0]), int(run[-1]) + 1


class _Collector:
    """Adds bins, and numbers hosts and labels."""

    def __init__(self, made: FaultWindows, record: AnalysedRun, zero_ns: int) -> None:
        self._made, self._zero_ns = made, zero_ns
        self._system = record.plan.system
        self._regions = {host.name: host.region for host in record.plan.hosts}
        self._host_at = {host.address: host.name for host in record.plan.hosts}
        numbers = {link.name: number for number, link in enumerate(record.wan_links)}
        routes = hops(record.plan)
        self._links = {
            hop: numbers[link.name]
            for hop, (link, _) in carriers(record.plan).items()
            if routes[hop] == (hop,)
        }
        self.hosts: dict[str, int] = {}
        self.labels: dict[str, int] = {}

    def take(self, table: pa.Table, bins: range) -> None:
        """Add these bins. The table has all their transfers in order of time."""
        bin_ns = self._made.bin_s * 1e9
        t_ns = table.column("t_ns").to_numpy()
        edges = [self._zero_ns + round(number * bin_ns) for number in (*bins, bins.stop)]
        places = np.searchsorted(t_ns, edges)
        for number, first, end in zip(bins, places, places[1:], strict=False):
            self._add(number, table.slice(first, end - first))

    def _add(self, number: int, table: pa.Table) -> None:
        pairs = list(
            zip(table.column("sender").to_pylist(), table.column("receiver").to_pylist(), strict=True)
        )
        links = np.array([self._link(*pair) for pair in pairs], np.int64)
        between = np.array([self._between(*pair) for pair in pairs], np.bool_)
        kept = _most_informative(table, between, ranks_of(self._system))
        counts = Counter(links[links != _OFF_LINKS].tolist())
        rows = table.take(pa.array(kept, pa.int64())).to_pylist()
        self._made.bins.append(
            {
                "number": number,
                "total": table.num_rows,
                "links": {str(link): count for link, count in sorted(counts.items())},
                "rows": [self._row(row, int(links[place])) for place, row in zip(kept, rows, strict=True)],
            }
        )

    def _link(self, sender: str | None, receiver: str | None) -> int:
        """Return the number of the link between the regions of two hosts."""
        hop = (self._regions.get(sender or "", ""), self._regions.get(receiver or "", ""))
        return self._links.get(hop, _OFF_LINKS)

    def _between(self, sender: str | None, receiver: str | None) -> bool:
        return self._regions.get(sender or "") != self._regions.get(receiver or "")

    def _row(self, row: Mapping[str, Any], link: int) -> list[Any]:
        """Return [ms since time 0, sender, receiver, label, delay in ms, fate, retransmitted, link]."""
        taken = None
        if row["t_sent_ns"] is not None and row["t_complete_ns"] is not None:
            taken = round((row["t_complete_ns"] - row["t_sent_ns"]) / 1e6, 2)
        return [
            round((row["t_ns"] - self._zero_ns) / 1e6, 2),
            self.hosts.setdefault(row["sender"] or "?", len(self.hosts)),
            self.hosts.setdefault(row["receiver"] or "?", len(self.hosts)),
            self.labels.setdefault(label(row, self._system, self._host_at), len(self.labels)),
            taken,
            row["fate"][0],
            int(row["retransmitted"]),
            link,
        ]


def _most_informative(
    table: pa.Table, between: "np.ndarray[Any, np.dtype[np.bool_]]", ranks: Ranks
) -> list[int]:
    """Return the indices of the most informative rows, in order of time."""
    if table.num_rows <= MESSAGES_OF_BIN_MAX:
        return list(range(table.num_rows))
    types = table.column("type").combine_chunks().dictionary_encode()
    weights = np.array([ranks.rank(name) for name in types.dictionary.to_pylist()])[types.indices.to_numpy()]
    seldom = np.array([name not in ranks.ordinary for name in types.dictionary.to_pylist()])[
        types.indices.to_numpy()
    ]
    disturbed = pc.not_equal(table.column("fate"), ARRIVED).to_numpy()
    disturbed |= table.column("retransmitted").to_numpy()
    order = np.lexsort((-weights, ~between, ~seldom, ~disturbed))
    informative = order[(disturbed | seldom | between)[order]][:MESSAGES_OF_BIN_MAX]
    usual = np.flatnonzero(~(disturbed | seldom | between))
    room = min(USUAL_OF_BIN_MAX, MESSAGES_OF_BIN_MAX - len(informative), len(usual))
    sample = usual[np.arange(room) * len(usual) // max(room, 1)]  # spread over the bin
    return sorted([*informative.tolist(), *sample.tolist()])


@dataclass(frozen=True, slots=True)
class FaultDiagram:
    """A diagram that was written. `path` is relative to the page."""

    fault: str
    label: str
    path: str
    says: str  # description for screen readers
    command: str  # the command that draws it again
    width: int  # intended size in pixels
    height: int
    svg: str

    @property
    def encoded(self) -> str:
        """The picture in base64, so that the page is self-contained."""
        return base64.b64encode(self.svg.encode()).decode()


def write_diagrams(record: AnalysedRun, run: RunDirectory) -> tuple[FaultDiagram, ...]:
    """Draw the time window around each fault; none without a table of transfers."""
    if not run.table("transfers").is_dir():
        return ()
    labels = {fault.name: fault_label(fault.kind, fault.target) for fault in record.plan.faults}
    made = []
    for fault in list(fault_times(record))[:DIAGRAMS_MAX]:
        try:
            scene = around_fault(run, record, fault)
        except InputError:
            continue  # no message was sent in the window
        path = run.figure(figure_name(fault, DiagramQuery()), "svg")
        path.parent.mkdir(exist_ok=True)
        picture = diagram_svg(scene)
        write_whole(path, picture.svg, sync=False)
        hosts = ", ".join(line.host for line in scene.lifelines)
        says = f"{scene.messages} messages between {hosts}, {scene.from_s:.2f} to {scene.to_s:.2f} s"
        made.append(
            FaultDiagram(
                fault=fault,
                label=labels.get(fault, fault),
                path=path.relative_to(run.path).as_posix(),
                says=says,
                command=scene.command,
                width=picture.width,
                height=picture.height,
                svg=picture.svg,
            )
        )
    return tuple(made)
