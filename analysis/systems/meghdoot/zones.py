"""The owners of zones at any time of a run, from the nodes' logs.

Each node logs its zones whenever they change, and how often each was taken over. A zone that was taken over
is held on behalf of a node that is considered failed. A killed process has no zones until it has rejoined.
From these logs follow the volume without an owner, the volume with several owners, and the history of zones
that were taken over.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from typing import Any

from analysis.timelines.log_records import log_records
from analysis.timelines.run_metadata import RunMetadata
from experiments.declared import Trait
from experiments.records.rundir import RunDirectory
from node.protocols.can.zones import Zone

ZONES, TAKEOVER, FAILED = "zones", "takeover", "failed"
SAMPLES_MAX = 1_000  # changes for which volumes are computed
NOTHING = 1e-9  # volumes below it count as 0, since edges are rounded in logs


@dataclass(frozen=True, slots=True)
class Holding:
    """A zone of a host. version: how often it was taken over; 0: the host is its owner."""

    host: str
    version: int
    zone: Zone


@dataclass(frozen=True, slots=True)
class ZoneChange:
    """A host's zones from `t_ns` on."""

    t_ns: int
    host: str
    holdings: tuple[Holding, ...]


@dataclass(frozen=True, slots=True)
class ZoneTakeover:
    """A host took over the zones of another host. noticed_ns: when it detected the failure, if logged.
    was_alive: whether the other process ran. until_ns: when it had returned or passed on the last zone.
    """

    t_ns: int
    host: str
    peer: str
    zones: tuple[Zone, ...]
    noticed_ns: int | None
    was_alive: bool
    until_ns: int | None

    @property
    def volume(self) -> float:
        """The volume of the zones."""
        return sum(zone.volume for zone in self.zones)


@dataclass(frozen=True, slots=True)
class OwnedVolumes:
    """The volume without an owner, and with several, from `t_ns` on; the space has volume 1."""

    t_ns: int
    without: float
    several: float


@dataclass(frozen=True)
class ZoneHistory:
    """All changes of all hosts, in order of time, and the takeovers."""

    changes: tuple[ZoneChange, ...]
    takeovers: tuple[ZoneTakeover, ...] = ()

    def at(self, t_ns: int) -> dict[str, tuple[Holding, ...]]:
        """Return the zones of each host that has any at a time."""
        last: dict[str, tuple[Holding, ...]] = {}
        for change in self.changes[: bisect_right(self._times_ns, t_ns)]:
            last[change.host] = change.holdings
        return {host: last[host] for host in sorted(last) if last[host]}

    def volumes(self, since_ns: int) -> list[OwnedVolumes]:
        """Return the volumes after each change from a time on; at most SAMPLES_MAX, spread evenly."""
        times = sorted({since_ns, *(each for each in self._times_ns if each > since_ns)})
        step = -(-len(times) // SAMPLES_MAX)
        return [OwnedVolumes(t_ns, *covered(self._all_at(t_ns))) for t_ns in times[::step]]

    def _all_at(self, t_ns: int) -> list[Zone]:
        return [each.zone for held in self.at(t_ns).values() for each in held]

    @cached_property
    def _times_ns(self) -> list[int]:
        return [change.t_ns for change in self.changes]


def covered(zones: Sequence[Zone]) -> tuple[float, float]:
    """Return the volume in none of these zones, and the volume in more than one of them."""
    several = [one.intersection(other) for one, other in combinations(zones, 2) if one.intersects(other)]
    once, twice = (sum(part.volume for part in _disjoint(each)) for each in (zones, several))
    return tuple(0.0 if each < NOTHING else each for each in (1 - once, twice))  # type: ignore[return-value]


def _disjoint(zones: Sequence[Zone]) -> list[Zone]:
    """Return disjoint boxes with the same union."""
    found: list[Zone] = []
    for zone in zones:
        rest = [zone]
        for earlier in found:
            rest = [part for each in rest for part in each.without(earlier)]
        found += rest
    return found


# --- Reading


def read_zones(run: RunDirectory, metadata: RunMetadata) -> ZoneHistory:
    """Read the zones from the logs of all nodes."""
    changes: list[ZoneChange] = []
    taken: list[tuple[int, str, str]] = []
    failed: list[tuple[int, str, str]] = []
    for host in metadata.having(Trait.SERVER):
        for record in log_records(run.log(host), (ZONES, TAKEOVER, FAILED)):
            t_ns = metadata.clocks.clock_of_host(host).at(record["t_ns"])
            if record["event"] == ZONES:
                changes.append(ZoneChange(t_ns, host, tuple(_holdings(record, host))))
            elif (peer := metadata.host_in(record, "peer")) is not None:
                (taken if record["event"] == TAKEOVER else failed).append((t_ns, host, peer))
    changes += _deaths(metadata)
    changes.sort(key=lambda change: change.t_ns)
    zones = ZoneHistory(tuple(changes))
    takeovers = [_takeover(each, zones, failed, metadata) for each in sorted(taken)]
    return ZoneHistory(zones.changes, tuple(takeovers))


def _holdings(record: Mapping[str, Any], host: str) -> Iterator[Holding]:
    for version, *edges in record.get("zones") or ():
        yield Holding(host, version, Zone(tuple(edges[::2]), tuple(edges[1::2])))


def _deaths(metadata: RunMetadata) -> Iterator[ZoneChange]:
    for fault in metadata.applied_changes:
        if fault.kind in {"kill", "leave"}:
            for host in fault.processes:
                yield ZoneChange(fault.t_ns, host, ())


def _takeover(
    taken: tuple[int, str, str],
    zones: ZoneHistory,
    failed: Sequence[tuple[int, str, str]],
    metadata: RunMetadata,
) -> ZoneTakeover:
    t_ns, host, peer = taken
    own = [change for change in zones.changes if change.host == host]
    before = next((each for each in reversed(own) if each.t_ns < t_ns), None)
    after = next((each for each in own if each.t_ns >= t_ns), None)
    gained = _gained(before, after)
    noticed = [at_ns for at_ns, who, whom in failed if (who, whom) == (host, peer) and at_ns <= t_ns]
    until = next(
        (
            each.t_ns
            for each in own
            if after is not None and each.t_ns > after.t_ns and not _has(each.holdings, gained)
        ),
        None,
    )
    return ZoneTakeover(
        t_ns, host, peer, gained, max(noticed, default=None), peer not in _dead(metadata, t_ns), until
    )


def _gained(before: ZoneChange | None, after: ZoneChange | None) -> tuple[Zone, ...]:
    rest = [each.zone for each in after.holdings if each.version] if after is not None else []
    for earlier in before.holdings if before is not None else ():
        rest = [part for each in rest for part in each.without(earlier.zone)]
    return tuple(rest)


def _has(holdings: Sequence[Holding], zones: Sequence[Zone]) -> bool:
    return any(each.zone.intersects(zone) for each in holdings for zone in zones)


def _dead(metadata: RunMetadata, t_ns: int) -> set[str]:
    dead: set[str] = set()
    for fault in metadata.applied_changes:
        if fault.t_ns <= t_ns and fault.processes:
            dead = dead - set(fault.processes) if fault.mends else dead | set(fault.processes)
    return dead


# --- Spans of time


@dataclass(frozen=True, slots=True)
class UnsettledPeriod:
    """A period in which not all volume had exactly one owner. until_ns: None if it lasted to the end."""

    since_ns: int
    until_ns: int | None
    without: float
    several: float


def unsettled(volumes: Sequence[OwnedVolumes]) -> list[UnsettledPeriod]:
    """Return the periods in which not all volume had one owner, each with the greatest volumes."""
    found: list[UnsettledPeriod] = []
    group: list[OwnedVolumes] = []
    for each, following in pairwise([*volumes, None]):
        if each is not None and (each.without or each.several):
            group.append(each)
        is_over = following is None or not (following.without or following.several)
        if group and is_over:
            without, several = max(one.without for one in group), max(one.several for one in group)
            found.append(
                UnsettledPeriod(
                    group[0].t_ns, following.t_ns if following is not None else None, without, several
                )
            )
            group = []
    return found
