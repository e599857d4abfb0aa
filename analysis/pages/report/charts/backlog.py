"""Arithmetic of catching up: how long throughput stays above normal after a gap, and what determines that.

While a stream is cut off from a region, a backlog grows at the stream's rate. Once the stream arrives by
another path, it arrives at its rate plus the spare capacity of that path, its headroom; oldest events first.
So

  the gap's events have arrived after     backlog / (rate + headroom)      catch-up less gap, measured
  the stream is up to date after          backlog / headroom               overshoot = gap x rate / headroom

The recovery table has the gap, the backlog and the catch-up: the actual headroom and the overshoot follow
from these. The table also has the headroom that the links alone would allow: the rate of the new path's last
link, in events of their size on the wire, less its earlier load and the stream itself. If that is far larger,
links did not set the pace; processes, TCP windows or the machine did.

The last event of the gap cannot arrive sooner than the delay of the new path. A catch-up hardly longer than
that only bounds the headroom from below.
"""

from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from analysis.pages.report.formatting import large, number, percent, scaled, seconds
from analysis.pages.report.paper import paper_section
from analysis.pages.report.run_reader import AnalysedRun, Row
from analysis.pages.report.tables import ROWS_MAX, Column, PageTable, figure, label, quantity, table
from experiments.planned.changes import ENDING_KINDS
from experiments.planned.plan_routes import carriers, hops

BEFORE_S = 5.0  # averaging time before the fault for rates, as for the recovery's baselines
RESOLVED_FROM = 1.5  # times the new path's delay: a shorter catch-up only bounds the headroom
LINK_SETS_PACE = 2.0  # within this factor of the link's headroom, the link is the bottleneck


@dataclass(frozen=True, slots=True)
class StreamPath:
    """The path of the stream after the switch."""

    last_link: str = ""  # "r0→r3"; "" if unknown
    delay_s: float = 0.0  # configured delay of its links
    rate_bits_per_s: float | None = None  # rate of the last link
    headroom: float | None = None  # capacity of that link left for the backlog, events/s


@dataclass(frozen=True, slots=True)
class StreamBacklog:
    """One stream's backlog in a region. Rates in events/s; None if not measured."""

    fault: str
    stream: int
    origin: str
    region: str
    rate: float | None
    gap_s: float
    counted: int
    came_in_s: float | None  # catch-up less gap
    settled_in_s: float | None  # latency settled, less gap
    way: StreamPath

    @property
    def expected(self) -> float | None:
        """The backlog expected from gap and rate."""
        return None if self.rate is None else self.rate * self.gap_s

    @property
    def bounded(self) -> bool:
        """Whether the headroom is only a lower bound, and the overshoot an upper bound."""
        return self.came_in_s is not None and self.came_in_s < RESOLVED_FROM * self.way.delay_s

    @property
    def headroom(self) -> float | None:
        """The actual headroom; None also if the gap's events arrived no faster than the rate."""
        if not self.came_in_s or self.rate is None:
            return None
        headroom = self.counted / self.came_in_s - self.rate
        return headroom if headroom > 0 else None

    @property
    def overshoot_s(self) -> float | None:
        """Time for which the backlog and newer events kept throughput above normal."""
        return self.counted / self.headroom if self.headroom else None


def backlogs(record: AnalysedRun) -> tuple[StreamBacklog, ...]:
    """Return the longest gap of each affected stream in each region, for each disturbing fault."""
    worst: dict[tuple[str, int, str], Row] = {}
    regions = {host.name: host.region for host in record.plan.hosts}
    disturbing = {fault.name for fault in record.plan.faults if fault.kind not in ENDING_KINDS}
    for row in record.recovery:
        if row["fault"] not in disturbing or row["client"] not in regions or row["applied_s"] is None:
            continue
        if row["affected"] and row.get("backlog_events") and row.get("switch_s"):
            key = (row["fault"], row["stream"], regions[row["client"]])
            if key not in worst or row["switch_s"] > worst[key]["switch_s"]:
                worst[key] = row
    largest = sorted(worst, key=lambda key: -worst[key]["backlog_events"])[:ROWS_MAX]
    return tuple(_backlog(record, key[2], worst[key]) for key in sorted(largest))


def _backlog(record: AnalysedRun, region: str, row: Row) -> StreamBacklog:
    stream, applied_s, gap_s = row["stream"], row["applied_s"], row["switch_s"]
    rate = _mean(record.of_stream(stream), applied_s - BEFORE_S, applied_s)
    since_gap = {
        key: None if row.get(key) is None else row[key] - gap_s for key in ("catch_up_s", "settled_s")
    }
    return StreamBacklog(
        fault=row["fault"],
        stream=stream,
        origin=record.origin(stream),
        region=region,
        rate=rate,
        gap_s=gap_s,
        counted=row["backlog_events"],
        came_in_s=since_gap["catch_up_s"],
        settled_in_s=since_gap["settled_s"],
        way=_way(record, (row.get("new_way") or "").split(), applied_s, rate),
    )


def _way(record: AnalysedRun, regions: list[str], applied_s: float, rate: float | None) -> StreamPath:
    """Return the new path from its regions in order; the load of its last link is that before the fault."""
    of_hop, routes, pairs = carriers(record.plan), hops(record.plan), list(pairwise(regions))
    found = [of_hop[hop] for pair in pairs for hop in routes.get(pair, ())]
    if not found or any(pair not in routes for pair in pairs):
        return StreamPath()
    link, direction = found[-1]
    bits_per_s = link.towards(direction).rate_bits_per_s
    rows = [row for row in _of_link(record, link.name) if row["direction"] == direction]
    before, bytes_per_event = _mean(rows, applied_s - BEFORE_S, applied_s), _bytes_per_event(rows)
    headroom = None
    if bits_per_s and bytes_per_event and before is not None and rate is not None:
        others = _mean(rows, applied_s - BEFORE_S, applied_s, "traffic_bytes_per_s") or 0.0
        headroom = max(0.0, (bits_per_s / 8 - others) / bytes_per_event - before - rate)
    delay_s = sum(link.towards(direction).delay_us for link, direction in found) / 1e6
    return StreamPath("→".join(regions[-2:]), delay_s, bits_per_s, headroom)


def _of_link(record: AnalysedRun, name: str) -> list[Row]:
    return [row for row in record.throughput if row["scope"] == "link" and row["name"] == name]


def _mean(rows: list[Row], from_s: float, to_s: float, column: str = "events_per_s") -> float | None:
    """Return the mean events/s, or of another column, over the bins entirely within the range."""
    values = [
        r.get(column) for r in rows if r["start_s"] >= from_s and r["start_s"] + r["bin_s"] <= to_s + 1e-6
    ]
    known = [float(value) for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _bytes_per_event(rows: list[Row]) -> float | None:
    events, size = (sum(row.get(key) or 0.0 for row in rows) for key in ("events_per_s", "bytes_per_s"))
    return size / events if events else None


_events_per_s = partial(large, noun="events/s")
_COLUMNS = (
    label("Stream → region", lambda b: f"s{b.stream} from {b.origin} → {b.region}"),
    label("Fault", "fault"),
    quantity("Gap", "gap_s", seconds, "until the stream's events flowed again"),
    quantity("Rate", "rate", _events_per_s, "of the stream, before the fault"),
    quantity("Gap x rate", "expected", lambda events: large(events, ""), "the expected backlog"),
    quantity("Backlog", "counted", number, "counted"),
    quantity("Arrived in", "came_in_s", seconds, "catch-up less gap: delay of the gap's events"),
    Column(
        "Headroom",
        lambda b: figure(("≥ " if b.bounded else "") + _events_per_s(b.headroom), b.headroom),
        numeric=True,
        help="backlog / arrived in, less the rate: spare capacity beside the stream",
    ),
    Column(
        "Overshoot",
        lambda b: figure(("≤ " if b.bounded else "") + seconds(b.overshoot_s), b.overshoot_s),
        numeric=True,
        help="backlog / headroom: time for which throughput stays above normal",
    ),
    quantity("Settled in", "settled_in_s", seconds, "latency settled, less gap"),
    label("New path", lambda b: b.way.last_link or "not seen"),
    quantity(
        "Link's headroom",
        lambda b: b.way.headroom,
        _events_per_s,
        "spare capacity of the last link of the new path",
    ),
)


def backlogs_table(found: tuple[StreamBacklog, ...]) -> PageTable:
    """Return the table of the arithmetic, one row per stream and region."""
    return table("backlogs", _COLUMNS, found)


def explanation(record: AnalysedRun, found: tuple[StreamBacklog, ...]) -> tuple[str, ...]:
    """Return sentences that explain the length of the longest overshoot."""
    measured = [b for b in found if b.overshoot_s is not None]
    if not measured:
        return ()
    worst = max(measured, key=lambda b: b.overshoot_s or 0.0)
    at_least, at_most = ("at least ", "at most ") if worst.bounded else ("", "")
    sentences = [
        f"Stream s{worst.stream} did not reach {worst.region} for {seconds(worst.gap_s)}; at"
        f" {large(worst.rate, 'events/s')} that is a backlog of {large(worst.expected, 'events')}"
        f" ({number(worst.counted)} were counted).",
        f"Its events arrived within {seconds(worst.came_in_s)}: at the stream's own rate and a headroom of"
        f" {at_least}{large(worst.headroom, 'events/s')}. So throughput stays above normal for"
        f" {at_most}{seconds(worst.overshoot_s)}.",
        "" if worst.settled_in_s is None else f"Latency had settled after {seconds(worst.settled_in_s)}.",
        _pace(worst),
        _papers_headroom(record, worst),
    ]
    return tuple(sentence for sentence in sentences if sentence)


def _pace(b: StreamBacklog) -> str:
    """Return what set the pace: the link, or the processes and TCP."""
    if not b.way.headroom or not b.headroom:
        return ""
    rate, spare = scaled(b.way.rate_bits_per_s, "bit/s"), large(b.way.headroom, "events/s")
    link = f"the link {b.way.last_link} ({rate}) has {spare} spare"
    if b.headroom * LINK_SETS_PACE >= b.way.headroom:
        return f"The new path's rate sets the pace: {link}."
    return f"Links did not set the pace: {link}. Delays, processes and TCP did."


def _papers_headroom(record: AnalysedRun, b: StreamBacklog) -> str:
    """Return the headroom that would give the paper's overshoot, as a sentence."""
    section = paper_section(record.experiment)
    if section is None or section.overshoot_s is None or not b.rate:
        return ""
    needed = b.rate * b.gap_s / section.overshoot_s
    return (
        f"The paper's overshoot of about {number(section.overshoot_s)} s after such a gap would need a"
        f" headroom of {large(needed, 'events/s')}, {percent(needed / b.rate)} of the stream's rate."
    )
