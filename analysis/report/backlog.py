"""The arithmetic of catching up: how long throughput stays above normal after a gap, and what sets that.

While a stream is cut off from a region, a backlog grows at the stream's rate. Once the stream comes by
another way, the backlog leaves with what that way has left over, its headroom, besides the stream itself:

    overshoot = backlog / headroom = gap x rate / headroom

The first two are measured (gap and backlog by the recovery table, the overshoot as catch-up less gap), so
the headroom that the run really had follows. Beside it stands what the links alone would have allowed: the
rate of the last link of the new way, in events of the size that they have on the wire, less what it carried
before and the stream itself. If that is far more, links did not set the pace; processes, TCP windows or the
machine did.
"""

from dataclasses import dataclass

from analysis.report.formatting import large, number, percent, scaled, seconds
from analysis.report.paper import paper_section
from analysis.report.reading import Row, RunRecord
from analysis.report.tables import Column, Table, figure, table, words
from analysis.timelines.facts import MENDING

BEFORE_S = 5.0  # what "before the fault" means for rates, as for the recovery's baselines
LINK_SETS_PACE = 2.0  # within this factor of the link's headroom, the link is what limits


@dataclass(frozen=True, slots=True)
class Backlog:
    """One stream that a region had to catch up with. Rates in events/s; None where not measured."""

    fault: str
    applied_s: float
    stream: int
    origin: str
    region: str
    rate: float | None
    gap_s: float
    counted: int | None
    overshoot_s: float | None
    way: str  # the last link of the new way, "r0→r3"; "" if it is not known
    way_rate_bits_per_s: float | None
    way_headroom: float | None  # what that link had left over for the backlog

    @property
    def expected(self) -> float | None:
        """The backlog that the gap and the rate make."""
        return None if self.rate is None else self.rate * self.gap_s

    @property
    def headroom(self) -> float | None:
        """The headroom that the run really had."""
        backlog = self.counted if self.counted is not None else self.expected
        return backlog / self.overshoot_s if backlog and self.overshoot_s else None


def backlogs(record: RunRecord) -> tuple[Backlog, ...]:
    """For each fault that disturbs, the longest gap of each affected stream in each region."""
    worst: dict[tuple[str, int, str], Row] = {}
    regions = {host["name"]: host["region"] for host in record.plan.get("hosts", ())}
    disturbing = {fault["name"] for fault in record.plan.get("faults", ()) if fault["kind"] not in MENDING}
    for row in record.recovery:
        if row["fault"] not in disturbing or row["client"] not in regions:
            continue
        if row["affected"] and row.get("backlog_events") and row.get("switch_s"):
            key = (row["fault"], row["stream"], regions[row["client"]])
            if key not in worst or row["switch_s"] > worst[key]["switch_s"]:
                worst[key] = row
    return tuple(_backlog(record, key[2], row) for key, row in sorted(worst.items()))


def _backlog(record: RunRecord, region: str, row: Row) -> Backlog:
    stream, applied_s, gap_s = row["stream"], row["applied_s"], row["switch_s"]
    origin = record.regions[stream] if 0 <= stream < len(record.regions) else ""
    rate = _mean(_throughput(record, "stream", f"s{stream}"), applied_s - BEFORE_S, applied_s)
    caught_up_s = row.get("catch_up_s")
    way, rate_bits_per_s, headroom = _last_link(record, (row.get("new_way") or "").split(), applied_s, rate)
    return Backlog(
        fault=row["fault"],
        applied_s=applied_s,
        stream=stream,
        origin=origin,
        region=region,
        rate=rate,
        gap_s=gap_s,
        counted=row.get("backlog_events"),
        overshoot_s=max(0.0, caught_up_s - gap_s) if caught_up_s is not None else None,
        way=way,
        way_rate_bits_per_s=rate_bits_per_s,
        way_headroom=headroom,
    )


def _last_link(
    record: RunRecord, way: list[str], applied_s: float, rate: float | None
) -> tuple[str, float | None, float | None]:
    """The link over which the new way enters the region; its rate; its headroom in events/s."""
    if len(way) < 2:
        return "", None, None
    origin, region = way[-2:]
    link = next((link for link in record.wan_links if {link["a"], link["b"]} == {origin, region}), None)
    if link is None:
        return "", None, None
    direction = "forward" if link["a"] == origin else "backward"
    bits_per_s = link[direction].get("rate_bits_per_s")
    rows = [row for row in _throughput(record, "link", link["name"]) if row["direction"] == direction]
    before, bytes_per_event = _mean(rows, applied_s - BEFORE_S, applied_s), _bytes_per_event(rows)
    headroom = None
    if bits_per_s and bytes_per_event and before is not None and rate is not None:
        headroom = max(0.0, bits_per_s / 8 / bytes_per_event - before - rate)
    return f"{origin}→{region}", bits_per_s, headroom


def _throughput(record: RunRecord, scope: str, name: str) -> list[Row]:
    return [row for row in record.throughput if row["scope"] == scope and row["name"] == name]


def _mean(rows: list[Row], from_s: float, to_s: float) -> float | None:
    """Mean events/s over the bins that lie wholly within."""
    values = [
        r["events_per_s"] for r in rows if r["start_s"] >= from_s and r["start_s"] + r["bin_s"] <= to_s + 1e-6
    ]
    values = [value for value in values if value is not None]
    return sum(values) / len(values) if values else None


def _bytes_per_event(rows: list[Row]) -> float | None:
    events, size = (sum(row.get(key) or 0.0 for row in rows) for key in ("events_per_s", "bytes_per_s"))
    return size / events if events else None


def backlogs_table(found: tuple[Backlog, ...]) -> Table:
    """The arithmetic, one line per stream and region."""
    columns = (
        Column("Fault"),
        Column("Stream → region"),
        Column("Gap", True, "until the stream's events flowed again"),
        Column("Rate", True, "of the stream, before the fault"),
        Column("Gap x rate", True, "the backlog that this makes"),
        Column("Backlog", True, "as counted"),
        Column("Overshoot", True, "catch-up less gap: how long the backlog took to leave"),
        Column("Headroom", True, "backlog / overshoot: what was really left over for it"),
        Column("New way"),
        Column("Link's headroom", True, "what the link of the new way alone would have left over for it"),
    )
    rows = (
        (
            words(b.fault),
            words(f"s{b.stream} from {b.origin} → {b.region}"),
            figure(seconds(b.gap_s), b.gap_s),
            figure(large(b.rate, "events/s"), b.rate),
            figure(large(b.expected, ""), b.expected),
            figure(number(b.counted), b.counted),
            figure(seconds(b.overshoot_s), b.overshoot_s),
            figure(large(b.headroom, "events/s"), b.headroom),
            words(b.way or "not seen"),
            figure(large(b.way_headroom, "events/s"), b.way_headroom),
        )
        for b in found
    )
    return table("backlogs", columns, rows)


def explanation(record: RunRecord, found: tuple[Backlog, ...]) -> tuple[str, ...]:
    """Sentences that say what set the length of the overshoot, from the longest one."""
    measured = [b for b in found if b.headroom and b.overshoot_s and b.rate]
    if not measured:
        return ()
    worst = max(measured, key=lambda b: b.overshoot_s or 0.0)
    sentences = [
        f"Stream s{worst.stream} did not reach {worst.region} for {seconds(worst.gap_s)}; at "
        f"{large(worst.rate, 'events/s')} that is a backlog of {number(round(worst.expected or 0))} events"
        + (f" ({number(worst.counted)} were counted)." if worst.counted is not None else "."),
        f"It left in {seconds(worst.overshoot_s)}, so the headroom was {large(worst.headroom, 'events/s')}"
        f" over the stream's own rate.",
        _pace(worst),
    ]
    section = paper_section(record.experiment)
    if section and section.overshoot_s and worst.rate:
        needed = worst.rate * worst.gap_s / section.overshoot_s
        sentences.append(
            f"The paper's overshoot of about {number(section.overshoot_s)} s after such a gap would need a"
            f" headroom of {large(needed, 'events/s')}, {percent(needed / worst.rate)} of the stream's rate."
        )
    return tuple(sentence for sentence in sentences if sentence)


def _pace(b: Backlog) -> str:
    """What set the pace: the link, or what is in front of it."""
    if not b.way_headroom or not b.headroom:
        return ""
    rate, left_over = scaled(b.way_rate_bits_per_s, "bit/s"), large(b.way_headroom, "events/s")
    link = f"the link {b.way} ({rate}) has {left_over} left over"
    if b.headroom * LINK_SETS_PACE >= b.way_headroom:
        return f"The new way's rate sets the pace: {link}."
    return f"Links did not set the pace: {link}. Processes and TCP did."
