"""Matches packets between two machines in the captures at the two ends of their link."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from analysis.arrays import Ints
from analysis.capture.clocks.bounds import Exchange, Sightings, thinned
from analysis.capture.pcap.fields import TCP
from analysis.capture.pcap.files.index import load_index
from analysis.capture.pcap.files.record_batches import read_columns, spans_of
from analysis.capture.time_range import EVER
from analysis.errors import CaptureError
from analysis.timelines.links.link_segments import KEY_COLUMNS, LinkSegments, same, segments

_COLUMNS = ("t_ns", "offset", "src_hi", *KEY_COLUMNS)


@dataclass(frozen=True, slots=True)
class LinkEnd:
    """A capture at one end of a link, and the address ranges (first, last) of the senders there."""

    machine: str
    capture: Path
    senders: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class MatchEnds:
    """A worker's task: find the packets seen at both ends of a link."""

    link: str
    near: LinkEnd
    far: LinkEnd
    mtu_bytes: int
    least_ns: tuple[int, int]  # the path's least delay in each direction

    @property
    def weight(self) -> int:
        """The approximate cost, in bytes of capture."""
        return sum(end.capture.stat().st_size for end in (self.near, self.far))

    def __call__(self) -> "MachineExchange":
        """Match the packets. An unreadable capture counts as empty; the table of captures reports it."""
        here, there = (_read(end.capture) for end in (self.near, self.far))
        left, came = (self._crossed(here, there, sender) for sender in (self.near, self.far))
        return MachineExchange(
            self.link, self.near.machine, self.far.machine, thinned(left, came), self.least_ns
        )

    def _crossed(self, here: Mapping[str, Ints], there: Mapping[str, Ints], sender: LinkEnd) -> Sightings:
        """Return one end's packets that both captures hold."""
        (near, near_rows), (far, far_rows) = (
            _sent(packets, sender, self.mtu_bytes) for packets in (here, there)
        )
        first, second = same(near.key, far.key)
        row, other = near_rows[near.row[first]], far_rows[far.row[second]]
        order = np.argsort(row, kind="stable")
        return Sightings(here["offset"][row][order], here["t_ns"][row][order], there["t_ns"][other][order])


@dataclass(frozen=True, slots=True)
class MachineExchange:
    """The packets that two machines exchanged over one link."""

    link: str
    near: str
    far: str
    exchange: Exchange
    least_ns: tuple[int, int] = (0, 0)

    def seen_from(self, machine: str) -> "MachineExchange":
        """Return the exchange with one of the two machines as the near one."""
        if machine == self.near:
            return self
        left, came = (
            Sightings(seen.place, seen.far_ns, seen.near_ns)
            for seen in (self.exchange.came, self.exchange.left)
        )
        turned = Exchange(left, came, self.exchange.seen_came, self.exchange.seen_left)
        return MachineExchange(self.link, self.far, self.near, turned, self.least_ns[::-1])


def _read(capture: Path) -> dict[str, Ints]:
    """Return the TCP segments with payload, in capture order."""
    found = []
    with suppress(CaptureError):
        for span in spans_of(capture, load_index(capture), EVER):
            for columns in read_columns(span, _COLUMNS):
                wanted = (columns["proto"] == TCP) & (columns["payload_length"] > 0)
                found.append({name: columns[name][wanted] for name in _COLUMNS})
    nothing = np.zeros(0, np.int64)
    return {name: np.concatenate([nothing, *(part[name] for part in found)]) for name in _COLUMNS}


def _sent(packets: Mapping[str, Ints], sender: LinkEnd, mtu_bytes: int) -> tuple[LinkSegments, Ints]:
    """Return the segments sent at one end, and their rows."""
    source, sent = packets["src_lo"], np.zeros(len(packets["src_lo"]), np.bool_)
    for first, last in sender.senders:
        sent |= (source >= first) & (source <= last)
    rows = np.flatnonzero(sent & (packets["src_hi"] == 0))
    return segments({name: packets[name][rows] for name in KEY_COLUMNS}, mtu_bytes), rows
