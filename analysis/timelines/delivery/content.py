"""Which client is to get which event by its content: all published events against all subscriptions.

Publishers record the values of their events, subscribers their subscriptions with times
(`node.core.content.content`). An event is for a subscriber if one of its subscriptions matches. It *must*
arrive if the subscription was confirmed before the event was published and cancelled after it. It *may*
arrive from the request of the subscription to the confirmation of its end, extended by the contract's
settle time (`under_way`). `node.core.content.content_matching` finds the matches; the time span of a
subscription is one more of its ranges there.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import inf
from pathlib import Path
from typing import Self

import numpy as np

from analysis.arrays import NEVER, Bools, Floats, Ints, ParallelArrays
from analysis.capture.clocks.machine_clocks import MachineClocks
from analysis.errors import AnalysisError
from analysis.timelines.delivery.delivery_records import SUBSCRIPTIONS
from analysis.timelines.delivery.epochs import EpochLayout
from analysis.timelines.measures import Rows, read_measures
from analysis.timelines.run_metadata import RunMetadata
from analysis.timelines.under_way import InFlightSpans
from experiments.declared import Trait
from experiments.records.rundir import RunDirectory
from node.core.content.content import Range
from node.core.content.content_matching import EventIndex
from node.core.content.content_measures import EVENT, INTEREST
from node.core.declaration import Contract
from node.core.deliveries import RecordKind


@dataclass(frozen=True, slots=True)
class EventMatches(ParallelArrays):
    """Pairs of a subscription and an event that it matches, as parallel arrays.

    client: index among the requested clients. event: index among all events. must: whether it must arrive
    rather than may.
    """

    client: Ints
    session: Ints
    stream: Ints
    seq: Ints
    must: Bools
    event: Ints


_OneClient = tuple[Ints, Ints, Ints, Ints, Floats, Floats]
"""The fields of `ContentRecords` from `client` on."""
_NONE = np.zeros(0, np.int64)
NOTHING = EventMatches(_NONE, _NONE, _NONE, _NONE, _NONE.astype(bool), _NONE)


@dataclass(frozen=True, slots=True)
class ContentRecords:
    """All events, and all subscriptions of some clients.

    domains: lowest and highest value of each attribute. values: a row per attribute. number: the client's own
    number of the subscription. times_ns: a row per kind in `SUBSCRIPTIONS` (NEVER: not recorded).
    low, high: rows of lowest and highest values.
    """

    domains: tuple[Range, ...]
    stream: Ints
    seq: Ints
    t_ns: Ints
    values: Floats
    client: Ints
    session: Ints
    number: Ints
    times_ns: Ints
    low: Floats
    high: Floats

    @property
    def confirmed_ns(self) -> Ints:
        """When each subscription was confirmed; NEVER if it was not."""
        found: Ints = self.times_ns[SUBSCRIPTIONS.index(RecordKind.SUBSCRIBED)]
        return found

    def laid_out(self, epochs: EpochLayout) -> "ContentRecords":
        """Return the content with sequence numbers that are comparable across epochs."""
        return replace(self, seq=epochs.numbers(self.stream, self.seq))

    def matched(self, contract: Contract, streams: Sequence[int], under_way: InFlightSpans) -> EventMatches:
        """Return the events of these streams that match subscriptions, with the subscribers."""
        return EventMatches.joined([NOTHING, *self.blocks(contract, streams, under_way)])

    def blocks(
        self, contract: Contract, streams: Sequence[int], under_way: InFlightSpans
    ) -> Iterator[EventMatches]:
        """Yield the matches in blocks of bounded size, in the order of the subscriptions."""
        settle_ns = under_way.settle_ns
        late_ns = settle_ns if contract.published == "acknowledged" else 0
        asking, asked, ending, ended = self.times_ns
        opens, closes = under_way.since(np.minimum(asking, asked)), _later(ended, settle_ns)
        surely, until = _later(asked, late_ns), np.where(ending == NEVER, ended, ending) - settle_ns
        mine = np.flatnonzero(np.isin(self.stream, streams))
        zero_ns = self.t_ns.min(initial=NEVER)  # differences are exact as doubles
        index = EventIndex(
            ((-inf, inf), *self.domains), np.vstack((self.t_ns[mine] - zero_ns, self.values[:, mine]))
        )
        opens, closes = (np.maximum(each, zero_ns - 1) - zero_ns for each in (opens, closes))
        for whose, place in index.matches(np.vstack((opens, self.low)), np.vstack((closes, self.high))):
            event = mine[place]
            t_ns = self.t_ns[event]
            must = (surely[whose] < t_ns) & (t_ns < until[whose])
            yield EventMatches(
                self.client[whose], self.session[whose], self.stream[event], self.seq[event], must, event
            )


@dataclass(frozen=True, slots=True)
class ContentFiles:
    """Files with the values of events, and with the subscriptions of some clients: hosts and their measures.
    domains: see `ContentRecords`.
    """

    domains: tuple[Range, ...]
    publishers: tuple[tuple[str, Path], ...]
    clients: tuple[tuple[str, Path], ...]

    @classmethod
    def from_run(cls, run: RunDirectory, metadata: RunMetadata, clients: Iterable[str]) -> Self | None:
        """Return the files of a run; None if the contract is not by content."""
        if metadata.declared.contract.audience != "content":
            return None
        publishers = ((name, run.host_measures(name)) for name in metadata.having(Trait.PUBLISHER))
        asked = ((name, run.host_measures(name)) for name in clients)
        return cls(metadata.domains, tuple(publishers), tuple(asked))

    def read(self, clocks: MachineClocks) -> ContentRecords:
        """Read all files. Raises AnalysisError if they are inconsistent."""
        events = (read_measures(*file, clocks).get(EVENT, ()) for file in self.publishers)
        interests = (
            (host, read_measures(host, path, clocks).get(INTEREST, ())) for host, path in self.clients
        )
        return content_of(self.domains, chain.from_iterable(events), interests)


def content_of(
    domains: tuple[Range, ...], events: Iterable[Rows], interests: Iterable[tuple[str, Iterable[Rows]]]
) -> ContentRecords:
    """Build the content from publishers' records of events, and each client's records of subscriptions.

    domains: see `ContentRecords`. Raises AnalysisError if the records are inconsistent.
    """
    columns, times, rows = _concatenated(events)
    stream, seq, values = *rows[:2].astype(np.int64), rows[2:]
    if not columns:
        values = np.zeros((len(domains), 0))
    if len(values) != len(domains):
        raise AnalysisError("events have other attributes than the plan declares")
    found = []
    for place, (client, blocks) in enumerate(interests):
        names, asked_ns, asked = _concatenated(blocks)
        if names and len(names) != 3 + 2 * len(domains):
            raise AnalysisError(f"{client} subscribes to other attributes than events have")
        found.append(_subscriptions(place, asked_ns, asked))
    asked_for = [each for each in found if each] or [_nothing(len(values))]
    parts = (np.concatenate(each, axis=-1) for each in zip(*asked_for, strict=True))
    return ContentRecords(domains, stream, seq, times, values, *parts)


def _concatenated(blocks: Iterable[Rows]) -> tuple[Sequence[str], Ints, Floats]:
    """Concatenate blocks with the same columns. Raises AnalysisError if the columns differ."""
    found = list(blocks)
    if not found:
        return (), np.zeros(0, np.int64), np.zeros((2, 0))
    columns = found[0][0]
    if any(each[0] != columns for each in found):
        raise AnalysisError("events of one run have different attributes")
    return (
        columns,
        np.concatenate([each[1] for each in found]),
        np.concatenate([each[2] for each in found], 1),
    )


def _subscriptions(client: int, t_ns: Ints, rows: Floats) -> _OneClient | None:
    """Return one client's subscriptions with their times."""
    if not len(t_ns):
        return None
    kind, session, number = rows[:3].astype(np.int64)
    keys, which, subscription = np.unique(
        np.stack((session, number)), axis=1, return_index=True, return_inverse=True
    )
    times_ns = np.full((len(SUBSCRIPTIONS), keys.shape[1]), NEVER, np.int64)
    for place, wanted in enumerate(SUBSCRIPTIONS):
        chosen = kind == wanted
        np.minimum.at(times_ns[place], subscription.ravel()[chosen], t_ns[chosen])
    attributes = (len(rows) - 3) // 2
    bounds = rows[3:, which]
    return np.full(keys.shape[1], client), *keys, times_ns, bounds[:attributes], bounds[attributes:]


def _nothing(attributes: int) -> _OneClient:
    return _NONE, _NONE, _NONE, np.zeros((len(SUBSCRIPTIONS), 0), np.int64), *(np.zeros((attributes, 0)),) * 2


def _later(t_ns: Ints, by_ns: int) -> Ints:
    """Return times later by `by_ns`; NEVER stays NEVER."""
    return np.where(t_ns == NEVER, NEVER, t_ns + by_ns)
