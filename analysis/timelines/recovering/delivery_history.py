"""The history of one stream at its clients, with the paths by which its events came."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from analysis.arrays import NEVER, Bools, Ints
from analysis.timelines.delivery.stream_paths import SourceHistory, change_times, length_us, path_to
from analysis.timelines.delivery.stream_pieces import ClientPieces
from analysis.timelines.recovering.host_paths import hops_of, hosts_to
from analysis.timelines.run_metadata import RunMetadata
from topologies.routes import Hop

AROUND_NS = 1_000_000_000
"""A client with no due events for this long before or after a fault shows no effect of it."""


@dataclass(frozen=True)
class DeliveryHistory:
    """The intervals of one stream at every client, and its sources: each region's, or each host's."""

    metadata: RunMetadata
    stream: int
    cut: ClientPieces
    seen: Mapping[str, SourceHistory]

    @property
    def owner(self) -> str:
        """The region that owns the stream."""
        return self.metadata.owner[self.stream]

    def place(self, client: str) -> str:
        """Return the end of a path to a client: its host, or its region."""
        return client if self.metadata.by_host else self.metadata.hosts[client].region

    def path(self, place: str, t_ns: int) -> tuple[Hop, ...] | None:
        """Return the path to a place just before `t_ns`.

        The path is direct from the owner if no packet shows it and the system's logs never do.
        """
        if self._straight:
            region = self.metadata.hosts[place].region if self.metadata.by_host else place
            return () if region == self.owner else ((self.owner, region),)
        if self.metadata.by_host:
            hosts = self.hosts(place, t_ns)
            return None if hosts is None else hops_of(hosts, self.metadata)
        return path_to(self.seen, self.owner, place, t_ns)

    def hosts(self, place: str, t_ns: int) -> tuple[str, ...] | None:
        """Return the hosts on the path to a host just before `t_ns`; None if unknown."""
        if self._straight or not self.metadata.by_host:
            return None
        return hosts_to(self.seen, self._publishers, place, t_ns)

    @cached_property
    def _publishers(self) -> frozenset[str]:
        return self.metadata.publishing_hosts(self.stream)

    def route(self, place: str, t_ns: int) -> tuple[Hop, ...] | None:
        """Return the path by which events arrived at a place before `t_ns`.

        If events are missing at that time, it is the path of the last one that arrived: a source chosen since
        then has shown no effect yet.
        """
        return self.path(place, self._shown_ns(place, t_ns))

    @cached_property
    def _shown_ns(self) -> Callable[[str, int], int]:
        return cache(self._last_shown_ns)

    def _last_shown_ns(self, place: str, t_ns: int) -> int:
        if self.metadata.by_host or self._straight:
            return t_ns
        mine = [number for number, host in enumerate(self.cut.hosts) if self.place(host) == place]
        arrived_ns = self.cut.arrived_ns[mine]
        due = self.cut.published_ns < t_ns
        waits = (arrived_ns >= t_ns) & (due if self.cut.due is None else due & self.cut.due[mine])
        if not waits.any():
            return t_ns
        last_ns = int(np.where(arrived_ns < t_ns, arrived_ns, -1).max(initial=-1))
        return t_ns if last_ns < 0 else last_ns + 1

    def tells(self, place: str, t_ns: int) -> bool:
        """Return whether packets or logs show the route to a place just before `t_ns`."""
        return not self._straight and self.route(place, t_ns) is not None

    @cached_property
    def _straight(self) -> bool:
        return not self.metadata.reading.moved and not any(source.names for source in self.seen.values())

    @cached_property
    def ends_ns(self) -> Ints:
        """When paths, or their configured delays, may have changed: the ends of segments of time."""
        periods = self.metadata.periods.values()
        starts = [period.start_ns for row in periods for period in row if period.start_ns is not None]
        if self.metadata.rerouted is not None:
            starts += self.metadata.rerouted.changes_ns
        return np.unique(np.concatenate((change_times(self.seen), np.array(starts, np.int64), [NEVER])))

    def lengths_us(self, place: str, t_ns: Ints) -> Ints:
        """Return the configured delay of the path to a place just before each of these times; -1: unknown."""
        segments, of = np.unique(np.searchsorted(self.ends_ns, t_ns, side="left"), return_inverse=True)
        return np.array([self._length_us(place, int(self.ends_ns[at])) for at in segments], np.int64)[of]

    @cached_property
    def _length_us(self) -> Callable[[str, int], int]:
        return cache(self._length_before_us)

    def _length_before_us(self, place: str, end_ns: int) -> int:
        hops = self.path(place, end_ns)
        return -1 if hops is None else length_us(self.metadata, hops, end_ns - 1)

    def apart_ns(self, t_ns: int) -> int:
        """Return how far apart the stream's last event before `t_ns` and its first one after it were
        published; 0 if either is missing.
        """
        published_ns = self.cut.published_ns[self.cut.published_ns != NEVER]
        before, after = published_ns[published_ns < t_ns], published_ns[published_ns >= t_ns]
        return int(after.min() - before.max()) if len(before) and len(after) else 0

    def were_due_sparsely(self, t_ns: int) -> Bools:
        """Return the clients to which the stream's events next to `t_ns` were due, if these are too far
        apart for `were_due`.
        """
        apart_ns = self.apart_ns(t_ns)
        if apart_ns < AROUND_NS:
            return np.zeros(len(self.cut.hosts), bool)
        return self._due_around(t_ns, apart_ns + 1)

    def were_due(self, t_ns: int) -> Bools:
        """Return the clients with due events both just before and just after `t_ns`.

        Clients that left before any event arrived again are excluded.
        """
        return self._due_around(t_ns, AROUND_NS)

    def came_again(self, t_ns: int) -> Bools:
        """Return the clients at which events arrived just before `t_ns`, and due events published later."""
        arrived_ns = self.cut.arrived_ns
        before = (arrived_ns < t_ns) & (arrived_ns > t_ns - AROUND_NS)
        found: Bools = np.any(before, axis=1) & self._came_from(t_ns)
        return found

    def _came_from(self, t_ns: int) -> Bools:
        """Return the clients at which due events arrived that were published at `t_ns` or later."""
        published_ns = self.cut.published_ns
        later = (self.cut.arrived_ns != NEVER) & (published_ns >= t_ns) & (published_ns != NEVER)
        found: Bools = np.any(later if self.cut.due is None else later & self.cut.due, axis=1)
        return found

    def _due_around(self, t_ns: int, around_ns: int) -> Bools:
        due, published_ns = self.cut.due, self.cut.published_ns
        if due is None or not due.size:
            return np.ones(len(self.cut.hosts), bool)
        since_ns = published_ns - t_ns
        before, after = (since_ns < 0) & (since_ns > -around_ns), (since_ns >= 0) & (since_ns < around_ns)
        stayed = due[:, np.argmax(np.where(published_ns == NEVER, -1, published_ns))]
        found: Bools = (
            np.any(due & before, axis=1) & np.any(due & after, axis=1) & (self._came_from(t_ns) | stayed)
        )
        return found
