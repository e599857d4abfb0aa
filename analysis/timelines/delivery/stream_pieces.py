"""One stream cut into pieces: sequence numbers with the same times of publication and arrival at each client.

Batches of a stream are intervals of sequence numbers with a time. All their ends together cut the stream into
pieces, and all events of a piece have the same history. So every property of events (latency, loss) is
computed once per piece and weighted by its count. An event that arrived more than once counts at its first
arrival. Nothing here processes single events, or assumes that batches keep their publisher's boundaries.

A table of all clients by all pieces may be mostly empty: for 10,000 clients that each want a hundredth of
25,000 events, every property would take two gigabytes. So a stream holds (client, piece) pairs, and only due
and arrived pieces take memory. For steps that process each client separately, `blocks` builds such tables for
some clients at a time, with the pieces that concern them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analysis.arrays import NEVER, Bools, Ints, begins, codes, offsets, rows
from analysis.timelines.delivery.sequence_intervals import NONE, Batches, Runs, batches, distinct, incidences
from analysis.timelines.run_window import RunWindow
from node.core.deliveries import RecordKind

CELLS_MAX = 1 << 21
"""Largest number of clients times pieces that are processed at once: about 100 MB."""

Sets = tuple[Mapping[str, Runs], Mapping[str, Runs]]
"""Maximal runs of numbers of one stream, by client: the events it must get, and the events due to it."""


@dataclass(frozen=True, slots=True)
class ClientPieces:
    """The pieces of one stream that concern some clients, sorted by sequence number.

    `arrived_ns` has a row per host of `hosts`; NEVER if a piece did not arrive. `wanted`: which pieces each
    host must get, `due`: which it would have to get if no fault were an excuse; None: all.
    """

    first_seq: Ints
    count: Ints
    published_ns: Ints
    hosts: tuple[str, ...]
    arrived_ns: Ints
    wanted: Bools | None = None
    due: Bools | None = None


@dataclass(frozen=True, slots=True)
class StreamPieces:
    """All pieces of one stream, sorted by sequence number. A pair is host * pieces + piece.

    `arrived`, `wanted` and `due` are sorted distinct pairs; wanted and due as in `ClientPieces`.
    """

    first_seq: Ints
    count: Ints
    published_ns: Ints
    hosts: tuple[str, ...]
    arrived: Ints
    arrived_ns: Ints
    wanted: Ints | None = None
    due: Ints | None = None

    def wanted_pairs(self) -> Ints:
        """Return the pieces that each host must get."""
        return np.arange(len(self.hosts) * len(self.count)) if self.wanted is None else self.wanted

    def split(self, pairs: Ints) -> tuple[Ints, Ints]:
        """Return the hosts and the pieces of pairs."""
        return np.divmod(pairs, max(len(self.count), 1))

    def last_ns(self, hosts: Sequence[int]) -> Ints:
        """Return when the last of these hosts had each piece that it must get.

        NEVER: some host never had it, -1: no host has to get it. hosts: indices among `hosts`.
        """
        pairs = self.wanted_pairs()
        host, piece = self.split(pairs)
        mine = np.isin(host, hosts)
        wanted = pairs[mine]
        at = np.searchsorted(self.arrived, wanted)
        came = np.append(self.arrived, -1)[at] == wanted
        found = np.full(len(self.count), -1, np.int64)
        np.maximum.at(found, piece[mine], np.where(came, np.append(self.arrived_ns, NEVER)[at], NEVER))
        return found

    @property
    def came(self) -> Bools:
        """Which pieces arrived at any host."""
        found = np.zeros(len(self.count), bool)
        found[self.split(self.arrived)[1]] = True
        return found

    def blocks(self, cells: int = CELLS_MAX) -> Iterator[ClientPieces]:
        """Yield all clients in their order, as tables: all at once if each must get all pieces.

        Otherwise a block has the pieces that arrived at any of its clients or were due there, and the last
        one published. It has at most this many cells, unless a single client has more.
        """
        clients = max(1, len(self.hosts))
        share = clients if self.wanted is None else max(1, cells // max(1, len(self.count)))
        for low in range(0, clients, share):
            yield self._block(low, min(low + share, len(self.hosts)))

    def _block(self, low: int, high: int) -> ClientPieces:
        pieces = len(self.count)
        limits = low * pieces, high * pieces
        part = slice(*np.searchsorted(self.arrived, limits))
        parts = [self.arrived[part]]
        shown = np.full(pieces, self.wanted is None)
        for pairs in (self.wanted, self.due):
            if pairs is not None:
                parts.append(pairs[slice(*np.searchsorted(pairs, limits))])
        for pairs in parts:
            shown[self.split(pairs)[1]] = True
        if pieces:
            shown[np.argmax(np.where(self.published_ns == NEVER, -1, self.published_ns))] = True
        column = np.cumsum(shown) - 1
        size = high - low, int(shown.sum())
        tables = [np.full(size, NEVER, np.int64), *(np.zeros(size, bool) for _ in parts[1:])]
        for table, pairs, values in zip(tables, parts, (self.arrived_ns[part], True, True), strict=False):
            host, piece = self.split(pairs)
            table[host - low, column[piece]] = values
        return ClientPieces(
            self.first_seq[shown], self.count[shown], self.published_ns[shown], self.hosts[low:high], *tables
        )


def cut_stream(
    published: Batches,
    came: Batches,
    host: Ints,
    clients: Sequence[str],
    sets: Sets | None = None,
    *,
    others: Batches = NONE,
) -> StreamPieces:
    """Cut a stream at every batch's ends. Pieces in no batch are omitted.

    came: batches that arrived, and `host` the index of the client of each. sets: None if every client must
    get everything. others: further batches, which arrived elsewhere.
    """
    everything = (published, came, others)
    edges = distinct(np.concatenate([ends for each in everything for ends in (each.first_seq, each.end_seq)]))
    places, batch = zip(*(incidences(edges, each) for each in everything), strict=True)
    known, number = np.unique(np.concatenate(places), return_inverse=True)
    piece = np.split(number, np.cumsum([len(each) for each in places[:-1]]))
    published_ns = np.full(len(known), NEVER, np.int64)
    np.minimum.at(published_ns, piece[0], published.t_ns[batch[0]])
    pairs, t_ns = host[batch[1]] * len(known) + piece[1], came.t_ns[batch[1]]
    order = np.lexsort((t_ns, pairs))
    first = order[begins(pairs[order])]
    first_seq = edges[known]
    wanted = (None, None) if sets is None else tuple(_pairs_of(runs, first_seq, clients) for runs in sets)
    return StreamPieces(
        first_seq, np.diff(edges)[known], published_ns, tuple(clients), pairs[first], t_ns[first], *wanted
    )


def from_records(
    published: pa.Table, taken: pa.Table, got: pa.Table, clients: Sequence[str], sets: Sets | None = None
) -> StreamPieces:
    """Cut a stream by its rows of `schemas.RECORDS`: drivers', proxies' and clients'.

    Published events are those that drivers know to be acknowledged. Their time is that of the proxy that
    accepted them, if known; a driver's own time may be later than clients' deliveries, so it is limited to
    the first of those.
    """
    acknowledged, heads = (
        batches(rows(table, kind=int(RecordKind.PUBLISHED))) for table in (published, taken)
    )
    got = got.filter(pc.not_equal(got.column("kind"), int(RecordKind.SESSION)))
    pieces = cut_stream(acknowledged, *_at_clients(got, clients), clients, sets, others=heads)
    seen_ns = np.full(len(pieces.count), NEVER, np.int64)
    np.minimum.at(seen_ns, pieces.split(pieces.arrived)[1], pieces.arrived_ns)
    piece, batch = incidences(np.append(pieces.first_seq, NEVER), heads)
    np.minimum.at(seen_ns, piece, heads.t_ns[batch])
    times_ns = np.where(pieces.published_ns == NEVER, NEVER, np.minimum(pieces.published_ns, seen_ns))
    return replace(pieces, published_ns=times_ns)


def from_events(events: pa.Table, clients: Sequence[str], sets: Sets | None = None) -> StreamPieces:
    """Cut a stream by its rows of `schemas.EVENTS`, as published and as they arrived at clients."""
    published = batches(rows(events, kind="published"))
    return cut_stream(published, *_at_clients(rows(events, kind="arrived"), clients), clients, sets)


def _at_clients(came: pa.Table, clients: Sequence[str]) -> tuple[Batches, Ints]:
    """Return the batches at these clients, and the index of the client of each."""
    host = codes(came.column("host"), list(clients))
    return batches(came.filter(pa.array(host >= 0))), host[host >= 0]


def without_misdated(pieces: StreamPieces, window: RunWindow) -> StreamPieces:
    """Treat pieces with a time outside the run as never published.

    Nothing is measured from them, and no host counts as missing them.
    """
    misdated = ~window.holds(pieces.arrived_ns)
    undated = ~window.holds(pieces.published_ns)
    undated[pieces.split(pieces.arrived[misdated])[1]] = True
    return replace(
        pieces,
        published_ns=np.where(undated, NEVER, pieces.published_ns),
        arrived=pieces.arrived[~misdated],
        arrived_ns=pieces.arrived_ns[~misdated],
    )


def _pairs_of(runs: Mapping[str, Runs], first_seq: Ints, clients: Sequence[str]) -> Ints:
    """Return the pieces in the runs of each client."""
    found = [np.zeros(0, np.int64)]
    for number, client in enumerate(clients):
        if client in runs:
            low, high = (np.searchsorted(first_seq, ends) for ends in runs[client])
            found.append(number * len(first_seq) + np.repeat(low, high - low) + offsets(high - low))
    return np.concatenate(found)
