"""The report section of Meghdoot runs: zones at each outage, and what faults did to them.

Tables list the zones and load of each node, the takeovers, with whether the owner had really failed and when
its zones were returned, and the times at which a part of the space had no owner, or several.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow.compute as pc
import pyarrow.dataset as ds

from analysis.jobs import transfers
from analysis.pages.report.formatting import count_of, number, percent, seconds
from analysis.pages.report.instants import instants_of
from analysis.pages.report.run_reader import AnalysedRun
from analysis.pages.report.sections import Captioned, ReportSection
from analysis.pages.report.tables import Column, PageTable, TableCell, label, quantity, table
from analysis.systems.meghdoot.zones import (
    Holding,
    UnsettledPeriod,
    ZoneHistory,
    ZoneTakeover,
    covered,
    read_zones,
    unsettled,
)
from analysis.timelines.links.periods import period_at
from analysis.timelines.run_metadata import RunMetadata, read_metadata
from analysis.timelines.schemas import MEASURES
from experiments.declared import Trait
from experiments.records.rundir import RunDirectory

LOAD_S = 3.0  # before an instant, over which the load is averaged


@dataclass(frozen=True, slots=True)
class ZonesAtTime:
    """The state of all zones at one time. load: events/s that reached each host's zones."""

    at_s: float
    when: str
    held: Mapping[str, tuple[Holding, ...]]
    load: Mapping[str, float]
    subscriptions: Mapping[str, float]


def report(record: AnalysedRun, run: RunDirectory) -> Sequence[ReportSection]:
    """Return the sections of one run; none if no node logged its zones."""
    metadata = read_metadata(record.run, record.clocks)
    zones = read_zones(run, metadata)
    if not any(change.holdings for change in zones.changes):
        return ()
    instants = [_instant(each, zones, run, metadata) for each in instants_of(record)]
    apart = unsettled(zones.volumes(metadata.zero_ns))
    return (
        ReportSection(
            key="zones",
            title="Zones",
            words=tuple(_words(metadata, instants, zones.takeovers, apart)),
            tables=(
                Captioned("Taken over", _takeovers_table(metadata, zones.takeovers)),
                Captioned("Without an owner, or with several", _unsettled_table(metadata, apart)),
                Captioned("Zones of each node", _nodes_table(run, metadata, instants)),
            ),
        ),
    )


def _instant(
    when: tuple[float, str], zones: ZoneHistory, run: RunDirectory, metadata: RunMetadata
) -> ZonesAtTime:
    at_s, description = when
    t_ns = metadata.zero_ns + round(at_s * 1e9)
    since_ns = t_ns - round(LOAD_S * 1e9)
    visits, subscriptions = (_measured(run, name, since_ns, t_ns) for name in ("visits", "subscriptions"))
    return ZonesAtTime(
        at_s,
        description,
        zones.at(t_ns),
        {host: sum(found) / LOAD_S for host, found in visits.items()},
        {host: found[-1] for host, found in subscriptions.items()},
    )


def _measured(run: RunDirectory, value: str, since_ns: int, until_ns: int) -> dict[str, list[float]]:
    """Return each host's measurements of its load in a period, in order of time."""
    chosen = (pc.field("name") == "load") & (pc.field("value") == value)
    chosen &= (pc.field("t_ns") > since_ns) & (pc.field("t_ns") <= until_ns)
    path, found = run.table("measures"), dict[str, list[float]]()
    if path.exists():
        rows = ds.dataset(path, MEASURES, format="parquet").to_table(filter=chosen).sort_by("t_ns")
        for row in rows.select(["host", "number"]).to_pylist():
            found.setdefault(row["host"], []).append(row["number"])
    return found


# --- Words


def _words(
    metadata: RunMetadata,
    instants: Sequence[ZonesAtTime],
    takeovers: Sequence[ZoneTakeover],
    apart: Sequence[UnsettledPeriod],
) -> Iterator[str]:
    states = [f"{each.when} ({seconds(each.at_s)}): {_held(each, metadata)}" for each in instants]
    yield f"Zones {'; '.join(states)}."
    during = [each for each in takeovers if each.t_ns >= metadata.zero_ns]
    wrongly = [each for each in during if each.was_alive]
    if during:
        lost = count_of(len({each.peer for each in during}), "node")
        text = f"In {count_of(len(during), 'takeover')} the zones of {lost} were taken over"
        back = sum(each.until_ns is not None for each in wrongly)
        yield text + (
            f"; in {number(len(wrongly))} of them the node was alive but unreachable:"
            f" in {number(back)} of these all zones were returned."
            if wrongly
            else "; all of these nodes had failed."
        )
    else:
        yield "No zones were taken over."
    if apart:
        last = apart[-1].until_ns
        without, several = max(each.without for each in apart), max(each.several for each in apart)
        end = (
            "lasting to the end" if last is None else f"the last time until {seconds(metadata.seconds(last))}"
        )
        yield (
            f"At most {percent(without)} of the space had no owner at a time, and {percent(several)} had more"
            f" than one; {end}."
        )
    else:
        yield "At all times each point of the space had one owner, by the nodes' own logs."


def _held(instant: ZonesAtTime, metadata: RunMetadata) -> str:
    holdings = [each for held in instant.held.values() for each in held]
    text = f"{count_of(len(holdings), 'zone')} of {count_of(len(instant.held), 'node')}"
    trust = [each for each in holdings if each.version]
    if trust:
        volume = 1 - covered([each.zone for each in trust])[0]
        text += f", {number(len(trust))} of them ({percent(volume)} of the space) held for others"
    cut = list(_cut_off(instant, metadata))
    return text + (f"; {', '.join(cut)}" if cut else "")


def _cut_off(instant: ZonesAtTime, metadata: RunMetadata) -> Iterator[str]:
    """Yield the part of the space that each region does not reach directly."""
    t_ns = metadata.zero_ns + round(instant.at_s * 1e9)
    volume: dict[str, float] = {}
    for host, held in instant.held.items():
        region = metadata.hosts[host].region
        volume[region] = volume.get(region, 0.0) + sum(each.zone.volume for each in held)
    by_share: dict[str, list[str]] = {}
    for region in sorted(volume):
        lost = [other for other in volume if other != region and not _is_up(region, other, t_ns, metadata)]
        if lost:
            by_share.setdefault(percent(sum(volume[other] for other in lost)), []).append(region)
    for share, regions in by_share.items():
        verb = "does" if len(regions) == 1 else "do"
        yield f"{', '.join(regions)} {verb} not reach {share} of the space directly"


def _is_up(one: str, other: str, t_ns: int, metadata: RunMetadata) -> bool:
    hops = metadata.routes.get((one, other), ())
    return all(period_at(metadata.periods[metadata.link_of[hop]], t_ns).up for hop in hops)


# --- Tables


def _takeovers_table(metadata: RunMetadata, takeovers: Sequence[ZoneTakeover]) -> PageTable:
    columns = (
        quantity("At", lambda each: metadata.seconds(each.t_ns), seconds, "seconds since start"),
        label("Node", "host", "the node that took over"),
        label("Took the zones of", "peer"),
        label("State of that node", lambda each: "alive, unreachable" if each.was_alive else "failed"),
        quantity("Zones", lambda each: len(each.zones), number),
        quantity("Part of the space", "volume", percent),
        quantity(
            "After detection",
            lambda each: None if each.noticed_ns is None else (each.t_ns - each.noticed_ns) / 1e9,
            seconds,
            "since the same node detected the failure",
        ),
        quantity(
            "Held for",
            lambda each: None if each.until_ns is None else (each.until_ns - each.t_ns) / 1e9,
            seconds,
            "until the last zone was returned or passed to others; a dash: to the end",
        ),
    )
    return table("takeovers-table", columns, [each for each in takeovers if each.t_ns >= metadata.zero_ns])


def _unsettled_table(metadata: RunMetadata, apart: Sequence[UnsettledPeriod]) -> PageTable:
    columns = (
        quantity("From", lambda each: metadata.seconds(each.since_ns), seconds, "seconds since start"),
        quantity(
            "For",
            lambda each: None if each.until_ns is None else (each.until_ns - each.since_ns) / 1e9,
            seconds,
            "a dash: to the end",
        ),
        quantity("Without an owner, at most", "without", percent),
        quantity("With several owners, at most", "several", percent),
    )
    return table("unsettled-table", columns, apart)


def _nodes_table(run: RunDirectory, metadata: RunMetadata, instants: Sequence[ZonesAtTime]) -> PageTable:
    columns = [label("Node", lambda host: host), label("Region", lambda host: metadata.hosts[host].region)]
    for instant in instants:
        columns += _columns_at(instant)
    got = _messages_got(run)
    columns.append(
        quantity("Messages received", got.get, number, "in the whole run", needed=lambda host: host in got)
    )
    return table("zones-table", columns, metadata.having(Trait.SERVER))


def _columns_at(instant: ZonesAtTime) -> Iterator[Column]:
    when = f"{instant.when}, {seconds(instant.at_s)}"

    def held(host: str) -> tuple[Holding, ...]:
        return instant.held.get(host, ())

    def zones(host: str) -> TableCell:
        mine = held(host)
        volume = sum(each.zone.volume for each in mine)
        return TableCell(number(len(mine)), volume, below=percent(volume) if mine else "")

    help_text = f"number, and part of the space; {when}"
    yield Column(f"Zones, {seconds(instant.at_s)}", zones, numeric=True, help=help_text)
    yield quantity("Subscriptions", instant.subscriptions.get, number, f"with points in its zones; {when}")
    yield quantity(
        "Visits/s", instant.load.get, number, f"events that reached its zones, mean of {LOAD_S:g} s; {when}"
    )


def _messages_got(run: RunDirectory) -> dict[str, int]:
    if not run.table("transfers").exists():
        return {}
    rows = transfers.read(run, columns=("receiver",), chosen=pc.field("receiver").is_valid())
    counted = rows.group_by("receiver").aggregate([([], "count_all")]).to_pylist()
    return {row["receiver"]: row["count_all"] for row in counted}
