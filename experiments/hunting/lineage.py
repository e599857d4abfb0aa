"""Which messages a delivery rested on, and the fewest faults that would have kept them all from coming.

A message that carries an event makes whoever gets it able to pass it on. So an event has ways from where it
was published to a client: through processes, over links, at certain times. Faults that hit every one of them
keep the event from the client, unless the system finds another way later: then a run with these faults shows
that way, and what more it takes to hit it, too, is asked of that run (lineage-driven fault injection: Alvaro
et al., SIGMOD 2015; without tracing, since messages say which events they carry).

Faults that hit all ways are a hitting set. The smallest are found by following one way that is left and
trying each fault that hits it (Reiter, "A Theory of Diagnosis from First Principles", 1987).
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Literal

from experiments.hunting.case import STEP_US, Disturbance, Kind

FAULTS_MAX = 3
TRIED_MAX = 100
"""Sets of faults that are looked at for one delivery."""
DELIVERIES, SETS = 4, 3
"""Of how many deliveries of a run, and how many sets of faults for each, are told."""
LEAD_US = 2 * STEP_US
"""So long before the first message that it is to hit a fault begins."""

Hop = tuple[str, str]
Weak = tuple[Literal["link", "pair", "process"], str, str]
"""What a fault can take away: a link between two regions, one way; what a process sends to another one of its
region; a process.
"""


@dataclass(frozen=True, slots=True)
class Transfer:
    """A message that carried events of a stream from one process to another."""

    at_us: int
    source: str
    target: str
    stream: int
    first_seq: int
    end_seq: int


@dataclass(frozen=True, slots=True)
class Delivery:
    """An event that a client got."""

    client: str
    stream: int
    seq: int


def deliveries(transfers: Sequence[Transfer], clients: Sequence[str]) -> list[Delivery]:
    """The last event of each message that came to a client, each once, in order of time."""
    known = frozenset(clients)
    found = ((each.target, each.stream, each.end_seq - 1) for each in transfers if each.target in known)
    return [Delivery(*one) for one in dict.fromkeys(found)]


def starving(
    transfers: Sequence[Transfer],
    clients: Sequence[str],
    hops: Mapping[Hop, Sequence[Hop]],
    rng: Random,
    times_us: Sequence[int],
) -> list[tuple[Disturbance, ...]]:
    """Disturbances that would have kept events from clients, a few sets for each of a few deliveries.

    hops: the links between each two regions. times_us: how long they may go on, each.
    """
    came = deliveries(transfers, clients)
    found = []
    for delivery in rng.sample(came, min(DELIVERIES, len(came))):
        ways = Ways.of(delivery, transfers, hops)
        sets = ways.fewest(rng)
        for chosen in rng.sample(sets, min(SETS, len(sets))):
            found.append(ways.disturbances(chosen, rng, rng.choice(times_us)))
    return found


@dataclass(frozen=True)
class Ways:
    """All ways of an event to a client: the messages of which they are made, in order of time, and the links
    between each two regions.
    """

    client: str
    messages: tuple[Transfer, ...]
    hops: Mapping[Hop, Sequence[Hop]]

    @classmethod
    def of(
        cls, delivery: Delivery, transfers: Sequence[Transfer], hops: Mapping[Hop, Sequence[Hop]]
    ) -> "Ways":
        """Those that these messages made, or would have made, had others not come first."""
        stream, seq = delivery.stream, delivery.seq
        carried = [
            each for each in transfers if each.stream == stream and each.first_seq <= seq < each.end_seq
        ]
        holding = {carried[0].source} if carried else set()
        possible = []
        for each in carried:
            if each.source in holding:
                holding.add(each.target)
                possible.append(each)
        needed, found = {delivery.client}, []
        for each in reversed(possible):
            if each.target in needed:
                needed.add(each.source)
                found.append(each)
        return cls(delivery.client, tuple(reversed(found)), hops)

    @cached_property
    def _weak(self) -> dict[Transfer, tuple[Weak, ...]]:
        """What a fault could take away so that each message does not come."""
        spared = {self.client, self.messages[0].source} if self.messages else set()
        found: dict[Transfer, tuple[Weak, ...]] = {}
        for each in self.messages:
            here, there = (name.partition("/")[0] for name in (each.source, each.target))
            between: list[Weak] = (
                [("pair", each.source, each.target)]
                if here == there
                else [("link", *hop) for hop in self.hops.get((here, there), ())]
            )
            through = [name for name in (each.source, each.target) if name not in spared]
            found[each] = (*between, *(("process", name, "") for name in through))
        return found

    def fewest(self, rng: Random) -> list[frozenset[Weak]]:
        """The smallest sets of weak points that every way goes through, of at most FAULTS_MAX."""
        sets: list[frozenset[Weak]] = []
        waiting = deque([frozenset[Weak]()])
        seen = set(waiting)
        for _ in range(TRIED_MAX):
            if not waiting or not self.messages:
                break
            chosen = waiting.popleft()
            if any(smaller <= chosen for smaller in sets):
                continue
            way = self._left(chosen)
            if way is None:
                sets.append(chosen)
            elif len(chosen) < FAULTS_MAX:
                more = list(dict.fromkeys(weak for each in way for weak in self._weak[each]))
                grown = [chosen | {weak} for weak in rng.sample(more, len(more))]
                waiting.extend(one for one in grown if one not in seen)
                seen.update(grown)
        return sets

    def _left(self, chosen: frozenset[Weak]) -> list[Transfer] | None:
        """A way that goes through none of these, or None."""
        origin = self.messages[0].source
        came: dict[str, Transfer | None] = {origin: None}
        for each in self.messages:
            if each.source in came and each.target not in came and chosen.isdisjoint(self._weak[each]):
                came[each.target] = each
        if self.client not in came:
            return None
        way: list[Transfer] = []
        last = came[self.client]
        while last is not None:
            way.append(last)
            last = came[last.source]
        return way[::-1]

    def disturbances(self, chosen: frozenset[Weak], rng: Random, lasting_us: int) -> tuple[Disturbance, ...]:
        """One for each weak point: from just before the first message that goes through it until `lasting_us`
        after the last.
        """
        return tuple(self._disturbance(weak, rng, lasting_us) for weak in sorted(chosen))

    def _disturbance(self, weak: Weak, rng: Random, lasting_us: int) -> Disturbance:
        through = [each.at_us for each in self.messages if weak in self._weak[each]]
        at_us = max(0, through[0] - LEAD_US) // STEP_US * STEP_US
        for_us = (through[-1] - at_us + lasting_us) // STEP_US * STEP_US
        kind, one, other = weak
        if kind == "link":
            return Disturbance("cut", at_us, for_us, (one, other), (), "forward")
        if kind == "pair":
            return Disturbance("separate", at_us, for_us, (one,), (other,), "forward")
        ended: Kind = rng.choice(("crash", "pause"))
        return Disturbance(ended, at_us, for_us, (one,))
