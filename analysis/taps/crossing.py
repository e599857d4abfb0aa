"""Packets that two taps of one path both captured: the clocks of the taps, and each packet's direction.

Packets are matched as on links of runs (`analysis.timelines.links.link_segments`): an offloaded frame counts
as its segments. Which tap a packet passes first is known by comparing both directions of a pair of hosts:
whatever the clocks show, packets from the near side appear later at the far tap than the answers do. The
clocks are estimated from the packets, as those of machines in runs, and their error bounds are hard.

Packets are sampled by their content, so that both taps choose the same ones; `transfers` matches all.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Final

import numpy as np
import numpy.typing as npt

from analysis.arrays import Bools, Ints, looked_up
from analysis.capture.clocks.bounds import Sightings, thinned
from analysis.capture.clocks.estimate import NOTHING, PACKETS, Estimate, estimate
from analysis.capture.clocks.wire import MachineExchange
from analysis.capture.pcap.fields import TCP, Columns
from analysis.capture.time_range import EVER
from analysis.taps.opening import Tap, Taps
from analysis.timelines.links.link_segments import KEY_COLUMNS, hashes, segments
from topologies.link_parameters import ETHERNET_BYTES

FIN, PSH, CWR = 0x01, 0x08, 0x80
"""Flags that offloading leaves to the last segment of a frame, and one that only its first has."""
MTU_BYTES: Final = 1500
"""Larger frames count as several segments of this size at both taps."""
_LINK_BYTES: Final = {0: 4, 12: 0, 14: 0, 101: 0, 108: 4, 113: 16, 228: 0, 229: 0, 276: 20}
"""Link headers by link type: loopback, raw IP and Linux cooked; others count as Ethernet."""
SAMPLE_MAX: Final = 300_000
"""Packets of a tap that the estimate of its clock considers, about."""
MATCHED_MIN: Final = 8
"""Two taps with fewer packets in common do not count as one path."""
PAIRS_MAX: Final = 10
"""Most pairs of taps that are compared: those with most packets in common."""
COLUMNS: Final = tuple(dict.fromkeys((*KEY_COLUMNS, "t_ns", "offset", "src_hi", "dst_hi", "flags")))
PACKET: Final = np.dtype(
    [
        ("hash", np.uint64), ("pair", np.uint64), ("flow", np.uint64),
        *((name, np.int64) for name in (
            "t_ns", "offset", "src_hi", "src_lo", "dst_hi", "dst_lo", "sport", "dport", "proto", "flags",
            "size", "wire", "seq", "place", "connection", "again",
        )),
    ]
)  # fmt: skip
Packets = npt.NDArray[np.void]


@dataclass(frozen=True, slots=True)
class Crossing:
    """Two taps of one path. ahead: whether packets of a pair of addresses, by its hash, pass `near` first."""

    near: Tap
    far: Tap
    matched: int  # in the sample
    ahead: Mapping[int, bool]
    exchange: MachineExchange


@dataclass(frozen=True, slots=True)
class ComparedTaps:
    """Taps with their clocks, by the first one's, and the paths between them."""

    taps: Taps
    crossings: tuple[Crossing, ...] = ()
    estimates: Mapping[str, Estimate] = field(default_factory=dict)

    def error_ns(self, one: str, other: str, t_ns: int) -> float | None:
        """Return the error bound of a time between two taps; None if their clocks could not be compared."""
        found = [self.estimates[name] for name in (one, other)]
        if any(each.source == NOTHING for each in found):
            return None
        return float(sum(each.clock.error_bounds_ns(np.array([t_ns]))[0] for each in found))


def compared(taps: Taps) -> ComparedTaps:
    """Compare all taps: find those with common packets, and estimate their clocks."""
    with_packets = [tap for tap in taps.taps if tap.index.packets]
    if len(with_packets) < 2:
        return ComparedTaps(taps)
    packets = max(tap.index.packets for tap in with_packets)
    part = -(-packets // SAMPLE_MAX)
    samples = {tap.name: _sample(tap, part) for tap in with_packets}
    found = [
        crossing
        for near, far in combinations(with_packets, 2)
        if (crossing := _crossing(near, far, samples[near.name], samples[far.name])) is not None
    ]
    met = [each.exchange for each in found]
    estimates = estimate([tap.name for tap in taps.taps], met, {})
    clocked = {
        tap.name: replace(tap, clock=estimates[tap.name].clock)
        if estimates[tap.name].source == PACKETS
        else tap
        for tap in taps.taps
    }
    crossings = sorted(found, key=lambda each: -each.matched)[:PAIRS_MAX]
    return ComparedTaps(
        replace(taps, taps=tuple(clocked.values())),
        tuple(replace(one, near=clocked[one.near.name], far=clocked[one.far.name]) for one in crossings),
        estimates,
    )


def _sample(tap: Tap, part: int) -> Packets:
    found = []
    for columns in tap.packets(EVER, COLUMNS):
        packets = packets_of(columns)
        found.append(packets[packets["hash"] % np.uint64(part) == 0] if part > 1 else packets)
    return np.concatenate(found)


def packets_of(columns: Columns) -> Packets:
    """Return the IP packets of a batch as segments."""
    rows = np.flatnonzero(columns["proto"] >= 0)
    here = {name: columns[name][rows].astype(np.int64) for name in COLUMNS}
    link_bytes = looked_up(columns["link_type"][rows], _LINK_BYTES, ETHERNET_BYTES)
    made = segments(here, MTU_BYTES - ETHERNET_BYTES + link_bytes)
    is_last = np.diff(made.row, append=-1) != 0
    found = np.zeros(len(made.row), PACKET)
    for name in here.keys() & set(PACKET.names or ()):
        found[name] = here[name][made.row]
    found["size"], found["wire"] = made.key[:, 6], made.wire_bytes
    found["size"] = np.where(found["proto"] == TCP, found["size"], here["payload_length"][made.row])
    found["seq"] = made.key[:, 4]
    found["flags"] &= np.where(is_last, ~CWR, ~(CWR | PSH | FIN))
    high = np.stack((found["src_hi"], found["dst_hi"], found["proto"]), axis=1)
    found["hash"] = hashes(np.concatenate((made.key, high, found["flags"][:, None]), axis=1))
    addresses = ("src_hi", "src_lo", "dst_hi", "dst_lo")
    found["pair"] = hashes(np.stack([found[name] for name in addresses], axis=1))
    ports = (*addresses, "sport", "dport", "proto")
    found["flow"] = hashes(np.stack([found[name] for name in ports], axis=1))
    return found


def _crossing(near: Tap, far: Tap, here: Packets, there: Packets) -> Crossing | None:
    """Compare two taps; None if they have too few packets in common to be of one path."""
    first, second, _, _ = matches(here["hash"], there["hash"])
    if first.size < MATCHED_MIN:
        return None
    here, there = here[first], there[second]
    ahead = _directions(here, there["t_ns"] - here["t_ns"])
    is_ahead = np.array([ahead[pair] for pair in here["pair"].tolist()])
    left, came = (
        Sightings(here["offset"][rows], here["t_ns"][rows], there["t_ns"][rows])
        for rows in (np.flatnonzero(is_ahead), np.flatnonzero(~is_ahead))
    )
    exchange = MachineExchange(f"{near.name} {far.name}", near.name, far.name, thinned(left, came))
    return Crossing(near, far, int(first.size), ahead, exchange)


def _directions(packets: Packets, apart_ns: Ints) -> dict[int, bool]:
    """Return whether packets pass the near tap first, by their pair of addresses.

    apart_ns: the time at the far tap minus that at the near one. Pairs with packets in one direction only are
    compared with the others; if there are no others, with equal clocks. Two taps of one place have no first
    one: either is, so that the difference of their clocks is known.
    """
    pairs, where = np.unique(packets["pair"], return_inverse=True)
    typical = np.array([np.median(apart_ns[where == number]) for number in range(pairs.size)])
    one = packets[np.unique(where, return_index=True)[1]]
    answers = hashes(np.stack([one[name] for name in ("dst_hi", "dst_lo", "src_hi", "src_lo")], axis=1))
    place = {int(pair): number for number, pair in enumerate(pairs.tolist())}
    answer = np.array([place.get(int(pair), -1) for pair in answers.tolist()])
    both = np.flatnonzero((answer >= 0) & (answer != np.arange(pairs.size)))
    middle = float(np.median((typical[both] + typical[answer[both]]) / 2)) if both.size else 0.0
    limit = np.full(pairs.size, middle)
    limit[both] = typical[answer[both]]
    is_ahead = np.where(typical == limit, pairs < answers, typical > limit)
    return dict(zip(pairs.tolist(), is_ahead.tolist(), strict=True))


def matches(near: npt.NDArray[np.uint64], far: npt.NDArray[np.uint64]) -> tuple[Ints, Ints, Bools, Bools]:
    """Return the rows of packets seen on both sides, and which of either side are unclear.

    Packets with equal contents match in their order if both sides have as many of them; otherwise they are
    unclear.
    """
    both = np.concatenate((near, far))
    order = np.argsort(both, kind="stable")
    ordered = both[order]
    begin = np.concatenate(([True], ordered[1:] != ordered[:-1]))[: ordered.size]
    start, group = np.flatnonzero(begin), np.cumsum(begin) - 1
    is_far = order >= near.size
    fars = np.bincount(group, is_far, start.size).astype(np.int64)
    nears = np.diff(np.append(start, ordered.size)) - fars
    equal = (nears == fars)[group]
    unclear = (~equal & (nears > 0)[group] & (fars > 0)[group])[np.argsort(order, kind="stable")]
    first, second = order[equal & ~is_far], order[equal & is_far] - near.size
    return first, second, unclear[: near.size], unclear[near.size :]
