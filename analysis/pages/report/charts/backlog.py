"""The arithmetic of catching up: how long throughput stays above normal after a gap, and what sets that.

While a stream is cut off from a region, a backlog grows at the stream's rate. Once the stream comes by
another way, it comes at its rate plus what that way has left over, its headroom; oldest events first. So

    the events of the gap have come after   backlog / (rate + headroom)      catch-up less gap, measured
    and the stream is level again after     backlog / headroom               overshoot = gap x rate / headroom

The recovery table has the gap, the backlog and the catch-up: from these follow the headroom that the run
really had, and the overshoot. Beside them stands what the links alone would have allowed: the rate of the
last link of the new path, in events of the size that they have on the wire, less what it carried before and
the stream itself. If that is far more, links did not set the pace; processes, TCP windows or the machine
did.

The last event of the gap cannot come sooner than the new path takes. A catch-up hardly longer than that only
bounds the headroom from below.
"""

from dataclasses import dataclass
from itertools import pairwise

from analysis.pages.report.formatting import large, number, percent, scaled, seconds
from analysis.pages.report.paper import paper_section
from analysis.pages.report.run_reader import AnalysedRun, Row
from analysis.pages.report.tables import Column, Table, figure, label, quantity, table
from experiments.planned.changes import MENDING, Direction
from experiments.planned.plan import LinkPlan

BEFORE_S = 5.0  # what "before the fault" means for rates, as for the recovery's baselines
SHOWN_MAX = 400  # there may be thousands of streams: those of which most was held back
RESOLVED_FROM = 1.5  # times the new path's delay: a shorter catch-up only bounds the headroom
LINK_SETS_PACE = 2.0  # within this factor of the link's headroom, the link is what limits


@dataclass(frozen=True, slots=True)
class StreamPath:
    """The path by which the stream came after the switch."""

    last_link: str = ""  # "r0→r3"; "" if it is not known
    delay_s: float = 0.0  # of its links, as configured
    rate_bits_per_s: float | None = None  # of the last link
    headroom: float | None = None  # what that link had left over for the backlog, events/s


@dataclass(frozen=True, slots=True)
class Backlog:
    """One stream that a region had to catch up with. Rates in events/s; None where not measured."""

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
        """The backlog that the gap and the rate make."""
        return None if self.rate is None else self.rate * self.gap_s

    @property
    def bounded(self) -> bool:
        """Whether the headroom is at least, and the overshoot at most, what they are given as."""
        return self.came_in_s is not None and self.came_in_s < RESOLVED_FROM * self.way.delay_s

    @property
    def headroom(self) -> float | None:
        """What the run really had; None also if the gap's events came no faster than the rate."""
        if not self.came_in_s or self.rate is None:
            return None
        headroom = self.counted / self.came_in_s - self.rate
        return headroom if headroom > 0 else None

    @property
    def overshoot_s(self) -> float | None:
        """How long the backlog and what was published meanwhile kept throughput above normal."""
        return self.counted / self.headroom if self.headroom else None


def backlogs(record: AnalysedRun) -> tuple[Backlog, ...]:
    """For each fault that disturbs, the longest gap of each affected stream in each region."""
    worst: dict[tuple[str, int, str], Row] = {}
    regions = {host.name: host.region for host in record.plan.hosts}
    disturbing = {fault.name for fault in record.plan.faults if fault.kind not in MENDING}
    for row in record.recovery:
        if row["fault"] not in disturbing or row["client"] not in regions or row["applied_s"] is None:
            continue
        if row["affected"] and row.get("backlog_events") and row.get("switch_s"):
            key = (row["fault"], row["stream"], regions[row["client"]])
            if key not in worst or row["switch_s"] > worst[key]["switch_s"]:
                worst[key] = row
    largest = sorted(worst, key=lambda key: -worst[key]["backlog_events"])[:SHOWN_MAX]
    return tuple(_backlog(record, key[2], worst[key]) for key in sorted(largest))


def _backlog(record: AnalysedRun, region: str, row: Row) -> Backlog:
    stream, applied_s, gap_s = row["stream"], row["applied_s"], row["switch_s"]
    rate = _mean(record.of_stream(stream), applied_s - BEFORE_S, applied_s)
    since_gap = {
        key: None if row.get(key) is None else row[key] - gap_s for key in ("catch_up_s", "settled_s")
    }
    return Backlog(
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
    """The new path, from its regions in order; what its last link carried is from before the fault."""
    hops = [_hop(record, *ends) for ends in pairwise(regions)]
    found = [hop for hop in hops if hop]
    if not found or len(found) < len(hops):
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


def _hop(record: AnalysedRun, sender: str, taker: str) -> tuple[LinkPlan, Direction] | None:
    """The link from one region to the next and its direction."""
    for link in record.wan_links:
        if {link.a, link.b} == {sender, taker}:
            return link, Direction.FORWARD if link.a == sender else Direction.BACKWARD
    return None


def _of_link(record: AnalysedRun, name: str) -> list[Row]:
    return [row for row in record.throughput if row["scope"] == "link" and row["name"] == name]


def _mean(rows: list[Row], from_s: float, to_s: float, column: str = "events_per_s") -> float | None:
    """Mean events/s, or of another column, over the bins that lie wholly within."""
    values = [
        r.get(column) for r in rows if r["start_s"] >= from_s and r["start_s"] + r["bin_s"] <= to_s + 1e-6
    ]
    known = [float(value) for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _bytes_per_event(rows: list[Row]) -> float | None:
    events, size = (sum(row.get(key) or 0.0 for row in rows) for key in ("events_per_s", "bytes_per_s"))
    return size / events if events else None


def _events_per_s(rate: float | None) -> str:
    return large(rate, "events/s")


_COLUMNS = (
    label("Stream → region", lambda b: f"s{b.stream} from {b.origin} → {b.region}"),
    label("Fault", "fault"),
    quantity("Gap", "gap_s", seconds, "until the stream's events flowed again"),
    quantity("Rate", "rate", _events_per_s, "of the stream, before the fault"),
    quantity("Gap x rate", "expected", lambda events: large(events, ""), "the backlog that this makes"),
    quantity("Backlog", "counted", number, "as counted"),
    quantity("Came in", "came_in_s", seconds, "catch-up less gap: how long the gap's events took to come"),
    Column(
        "Headroom",
        lambda b: figure(("≥ " if b.bounded else "") + _events_per_s(b.headroom), b.headroom),
        numeric=True,
        help="backlog / came in, less the rate: what was left over beside the stream",
    ),
    Column(
        "Overshoot",
        lambda b: figure(("≤ " if b.bounded else "") + seconds(b.overshoot_s), b.overshoot_s),
        numeric=True,
        help="backlog / headroom: how long throughput stays above normal",
    ),
    quantity("Settled in", "settled_in_s", seconds, "latency settled, less gap"),
    label("New path", lambda b: b.way.last_link or "not seen"),
    quantity(
        "Link's headroom",
        lambda b: b.way.headroom,
        _events_per_s,
        "what the last link of the new path alone would have left over",
    ),
)


def backlogs_table(found: tuple[Backlog, ...]) -> Table:
    """The arithmetic, one line per stream and region."""
    return table("backlogs", _COLUMNS, found)


def explanation(record: AnalysedRun, found: tuple[Backlog, ...]) -> tuple[str, ...]:
    """Sentences that say what set the length of the longest overshoot."""
    measured = [b for b in found if b.overshoot_s is not None]
    if not measured:
        return ()
    worst = max(measured, key=lambda b: b.overshoot_s or 0.0)
    at_least, at_most = ("at least ", "at most ") if worst.bounded else ("", "")
    sentences = [
        f"Stream s{worst.stream} did not reach {worst.region} for {seconds(worst.gap_s)}; at"
        f" {large(worst.rate, 'events/s')} that is a backlog of {large(worst.expected, 'events')}"
        f" ({number(worst.counted)} were counted).",
        f"Its events came within {seconds(worst.came_in_s)}: at the stream's own rate and a headroom of"
        f" {at_least}{large(worst.headroom, 'events/s')}. So throughput stays above normal for"
        f" {at_most}{seconds(worst.overshoot_s)}.",
        "" if worst.settled_in_s is None else f"Latency had settled after {seconds(worst.settled_in_s)}.",
        _pace(worst),
        _papers_headroom(record, worst),
    ]
    return tuple(sentence for sentence in sentences if sentence)


def _pace(b: Backlog) -> str:
    """What set the pace: the link, or what is in front of it."""
    if not b.way.headroom or not b.headroom:
        return ""
    rate, left_over = scaled(b.way.rate_bits_per_s, "bit/s"), large(b.way.headroom, "events/s")
    link = f"the link {b.way.last_link} ({rate}) has {left_over} left over"
    if b.headroom * LINK_SETS_PACE >= b.way.headroom:
        return f"The new path's rate sets the pace: {link}."
    return f"Links did not set the pace: {link}. Delays, processes and TCP did."


def _papers_headroom(record: AnalysedRun, b: Backlog) -> str:
    """Which headroom would make the paper's overshoot."""
    section = paper_section(record.experiment)
    if section is None or section.overshoot_s is None or not b.rate:
        return ""
    needed = b.rate * b.gap_s / section.overshoot_s
    return (
        f"The paper's overshoot of about {number(section.overshoot_s)} s after such a gap would need a"
        f" headroom of {large(needed, 'events/s')}, {percent(needed / b.rate)} of the stream's rate."
    )
