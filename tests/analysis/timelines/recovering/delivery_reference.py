"""The figures of faults computed from deliveries only, for runs on three fully connected regions.

Simple, slow, and independent of the analysis: its inputs are the publication and arrival times of each event
and the experiment's file. The path of an event follows from its latency: the detour over the third region
takes longer.

A fault acts as soon as a link behaves as it specifies: an outage when no packet crosses; a `set` when packets
cross with the new value; a restore when packets cross again.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

DELAYS_MS = {("a", "b"): 20.0, ("b", "c"): 25.0, ("a", "c"): 30.0}
REGIONS = ("a", "b", "c")
STEP_S = 0.01
RUN_S = 9.0
OUTAGES = frozenset({"cut", "isolate", "partition", "flap"})
MENDING = frozenset({"restore", "continue", "restart"})
PARAMETERS = ("delay", "loss", "rate")

Given = Mapping[str, Any]  # a fault as it stands in a file
Hop = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Event:
    """When it was published and when a client had it (None: never), in seconds since time 0."""

    published_s: float
    came_s: float | None


Deliveries = Mapping[tuple[str, str], Sequence[Event]]
"""Events by the stream's region and the client's region, in the order of publication."""


@dataclass(frozen=True, slots=True)
class Reference:
    """The figures of a fault; None if unknown."""

    acts_s: float | None = None
    pairs: int = 0
    first_s: float | None = None
    switch_s: float | None = None
    catch_up_s: float | None = None
    silence_s: float | None = None
    backlog: int | None = None
    lost: int = 0


def seconds(text: str) -> float:
    """`1.5s` or `250ms` as seconds."""
    return float(text[:-2]) / 1000 if text.endswith("ms") else float(text[:-1])


def kind_of(fault: Given) -> str:
    """`cut`, `set`..."""
    known = (*OUTAGES, "set", "restore", "kill", "stop", "reset", "separate", *MENDING)
    return next(kind for kind in known if kind in fault)


def hops_of(fault: Given) -> frozenset[Hop]:
    """Return the directions between regions on which a fault of links acts."""
    kind = kind_of(fault)
    if kind in ("cut", "flap", "set"):
        here, there = fault[kind]
        hops = {(here, there), (there, here)}
    elif kind == "isolate":
        here = fault[kind]
        hops = {hop for other in REGIONS if other != here for hop in ((here, other), (other, here))}
    elif kind == "partition":
        one, two = fault[kind]
        hops = {hop for x in one for y in two for hop in ((x, y), (y, x))}
    else:
        return frozenset()
    which = fault.get("direction", "both")
    if which == "both" or kind == "partition":
        return frozenset(hops)
    forward = (fault["isolate"],) if kind == "isolate" else (fault[kind][0],)
    return frozenset(hop for hop in hops if (hop[0] in forward) is (which == "forward"))


class Network:
    """The state of the links at any time, with all faults."""

    def __init__(self, faults: Sequence[Given]) -> None:
        self.faults = faults

    def acting(self, t_s: float, but: Given | None = None) -> list[Given]:
        """Return the faults that act on links at a time, in the order of their start.

        but: one to leave out.
        """
        kept = [fault for fault in self.faults if fault is not but]
        restores = [fault for fault in kept if "restore" in fault and seconds(fault["at"]) <= t_s + 1e-9]
        found = []
        for number, fault in enumerate(kept):
            at_s, for_s = seconds(fault["at"]), seconds(fault.get("for", "1000s"))
            if "restore" in fault or not hops_of(fault) or not at_s <= t_s + 1e-9 < at_s + for_s:
                continue
            if "flap" in fault:
                down_s, up_s = seconds(fault["down"]), seconds(fault["up"])
                if (t_s + 1e-9 - at_s) % (down_s + up_s) >= down_s:
                    continue
            if any(each["restore"] == fault["name"] for each in restores):
                continue
            found.append((at_s, number, fault))
        return [fault for _, _, fault in sorted(found, key=lambda each: each[:2])]

    def is_up(self, hop: Hop, t_s: float, but: Given | None = None) -> bool:
        """Whether packets cross."""
        return not any(kind_of(each) in OUTAGES and hop in hops_of(each) for each in self.acting(t_s, but))

    def value(self, hop: Hop, name: str, t_s: float, but: Given | None = None) -> Any:
        """Return the value that faults give a parameter, or None for the topology's."""
        given = [each[name] for each in self.acting(t_s, but) if name in each and hop in hops_of(each)]
        return given[-1] if given else None

    def _state(self, hop: Hop, t_s: float, but: Given | None = None) -> list[Any]:
        return [self.is_up(hop, t_s, but), *(self.value(hop, name, t_s, but) for name in PARAMETERS)]

    def delay_s(self, hop: Hop, t_s: float) -> float:
        """One way over a link."""
        usual = DELAYS_MS.get(hop) or DELAYS_MS[hop[1], hop[0]]
        given = self.value(hop, "delay", t_s)
        return usual / 1000 if given is None else seconds(given)

    def does(self, fault: Given, hop: Hop, t_s: float) -> bool:
        """Return whether a direction behaves as a link fault specifies."""
        kind = kind_of(fault)
        if kind == "restore":
            return self.is_up(hop, t_s) and self._state(hop, t_s) != self._state(hop, t_s, but=fault)
        if fault not in self.acting(t_s):
            return False
        if kind in OUTAGES:
            return True
        said = [name for name in PARAMETERS if name in fault]
        return self.is_up(hop, t_s) and any(self.value(hop, name, t_s) == fault[name] for name in said)

    def begin(self, fault: Given) -> tuple[float | None, frozenset[Hop]]:
        """Return when a fault first acts, and on which hops."""
        if not hops_of(fault) and "restore" not in fault:
            return seconds(fault["at"]), frozenset()
        named = fault
        if "restore" in fault:
            named = next(each for each in self.faults if each["name"] == fault["restore"])
        t_s = seconds(fault["at"])
        while t_s < RUN_S:
            if hops := frozenset(hop for hop in hops_of(named) if self.does(fault, hop, t_s)):
                return t_s, hops
            t_s = round(t_s + STEP_S, 6)
        return None, frozenset()


def references(faults: Sequence[Given], deliveries: Deliveries) -> dict[str, Reference]:
    """Return the figures of each fault, by its name."""
    network = Network(faults)
    begins = {fault["name"]: network.begin(fault) for fault in faults}
    starts = sorted({t_s for t_s, _ in begins.values() if t_s is not None})
    found = {}
    for fault in faults:
        at_s, hops = begins[fault["name"]]
        if at_s is None:
            found[fault["name"]] = Reference()
            continue
        next_s = min((t_s for t_s in starts if t_s > at_s), default=RUN_S)
        struck = {
            pair: events
            for pair, events in deliveries.items()
            if _is_struck(fault, hops, pair, events, at_s, network)
        }
        own = [_pair(events, at_s, next_s) for events in struck.values()]
        found[fault["name"]] = Reference(
            acts_s=at_s,
            pairs=len(own),
            first_s=min((each.switch_s for each in own if each.switch_s is not None), default=None),
            switch_s=_worst([each.switch_s for each in own]),
            catch_up_s=_worst([each.catch_up_s for each in own]),
            silence_s=_worst([each.silence_s for each in own]),
            backlog=max((each.backlog for each in own), default=None),
            lost=sum(each.lost for each in own),
        )
    return found


def _worst(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return max(known) if known and len(known) == len(values) else None


def _is_struck(
    fault: Given,
    hops: frozenset[Hop],
    pair: tuple[str, str],
    events: Sequence[Event],
    at_s: float,
    network: Network,
) -> bool:
    kind, (owner, region) = kind_of(fault), pair
    way = _way(pair, events, at_s, network)
    if kind == "restore":
        return pair in hops
    if not hops:
        places = {owner, region, *(hop[0] for hop in way)}
        others = {each.split("/")[0] for each in (fault[kind], *fault.get("from", ()))}
        return bool(places & others)
    return bool(hops & set(way))


def _way(pair: tuple[str, str], events: Sequence[Event], at_s: float, network: Network) -> list[Hop]:
    """Return the path of the last event that arrived before a time."""
    owner, region = pair
    if owner == region:
        return []
    came = [each for each in events if each.came_s is not None and each.came_s < at_s]
    last_s = max((each.came_s or 0.0 for each in came), default=0.0)
    (third,) = set(REGIONS) - set(pair)
    ways = [[pair], [(owner, third), (third, region)]]

    def off(event: Event, way: Sequence[Hop]) -> float:
        least_s = sum(network.delay_s(hop, event.published_s) for hop in way) + 0.002
        took_s = (event.came_s or 0.0) - event.published_s
        return took_s - least_s if took_s >= least_s - 0.001 else 10.0

    for window_s in (0.15, 0.6):  # a lost segment holds up those behind it
        recent = [each for each in came if (each.came_s or 0.0) > last_s - window_s]
        fastest = min(recent, key=lambda each: (each.came_s or 0.0) - each.published_s, default=None)
        if fastest is None:
            return ways[0]
        way = min(ways, key=lambda way: off(fastest, way))
        if off(fastest, way) < 0.01:
            break
    return way


@dataclass(frozen=True, slots=True)
class _Times:
    switch_s: float | None
    catch_up_s: float | None
    silence_s: float | None
    backlog: int = 0
    lost: int = 0


def _pair(events: Sequence[Event], at_s: float, next_s: float) -> _Times:
    """Return one client's figures of one stream for a fault at this time; the next one begins at `next_s`."""

    after = [each.came_s for each in events if each.published_s >= at_s and each.came_s is not None]
    if not after:
        return _Times(None, None, None)
    first_s = min(after)
    gap = [each for each in events if each.published_s <= first_s]
    held = [each.came_s for each in gap if each.came_s is None or each.came_s >= at_s]
    late_s = None if None in held else max(came_s for came_s in held if came_s is not None)
    end_s = RUN_S if late_s is None else late_s
    behind = [
        sum(each.published_s <= now_s and (each.came_s is None or each.came_s > now_s) for each in events)
        for now_s in (each.published_s for each in events if at_s <= each.published_s <= end_s)
    ]
    lost = [each for each in events if each.came_s is None and at_s <= each.published_s < next_s]
    catch_up_s = None if late_s is None else late_s - at_s
    silence_s = _silence(events, at_s, next_s)
    return _Times(first_s - at_s, catch_up_s, silence_s, max(behind, default=0), len(lost))


def _silence(events: Sequence[Event], at_s: float, next_s: float) -> float | None:
    came = sorted(each.came_s for each in events if each.came_s is not None)
    before, after = [t_s for t_s in came if t_s < at_s][-1:], [t_s for t_s in came if at_s <= t_s < next_s]
    if not after:
        return None
    return max((b - a for a, b in _neighbours(before + after)), default=0.0)


def _neighbours(times: Sequence[float]) -> Iterator[tuple[float, float]]:
    return pairwise(times)
