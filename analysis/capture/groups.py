"""The multicast groups that a host joined, from its own IGMP reports in its own capture.

Bridges hand every datagram to a group to all hosts of a region. A host receives those to groups that it has
joined; the others are in its capture too, but did not arrive.
"""

from collections.abc import Mapping
from ipaddress import IPv4Address, ip_address

import numpy as np
import pyarrow as pa

from analysis.arrays import Bytes, Ints
from analysis.capture.pcap.fields import Columns
from analysis.schemas import MEMBERSHIPS
from topologies.group_membership import END_GROUP, FIRST_GROUP, IGMP, JoinedGroups

REPORT_DELAY_NS = 30_000_000
"""Linux reports a change two to three of its ticks later, which last at most 10 ms."""
Membership = tuple[int, int | None]
"""When a host reported that it joined a group, and that it left; None if it stayed."""
Members = Mapping[str, Mapping[str, list[Membership]]]
"""The memberships of a run, by group and host."""


def is_group(address: str) -> bool:
    """Return whether an address is a multicast group's."""
    return ":" not in address and IPv4Address(address).is_multicast


def members_of(table: pa.Table) -> Members:
    """Return all rows of `MEMBERSHIPS` as a mapping."""
    found: dict[str, dict[str, list[Membership]]] = {}
    for row in table.to_pylist():
        by_host = found.setdefault(row["group"], {})
        by_host.setdefault(row["host"], []).append((row["joined_ns"], row["left_ns"]))
    return found


class GroupMemberships:
    """The memberships of one host, read window by window from its capture."""

    def __init__(self, host: str, address: str) -> None:
        self._host = host
        self.address = address
        self._number = int(ip_address(address))
        self._joined = JoinedGroups()
        self._times: dict[int, list[Membership]] = {}

    def read(self, data: Bytes, packets: Columns) -> None:
        """Read the host's reports among the next packets."""
        mine = (packets["proto"] == IGMP) & (packets["src_hi"] == 0) & (packets["src_lo"] == self._number)
        for row in np.flatnonzero(mine).tolist():
            begin = int(packets["offset"][row]) + int(packets["payload_offset"][row])
            end = int(packets["offset"][row]) + int(packets["length"][row])
            t_ns = int(packets["t_ns"][row])
            for group, has_joined in self._joined.take(data[begin:end].tobytes()):
                times = self._times.setdefault(group, [])
                if has_joined:
                    times.append((t_ns, None))
                else:
                    times[-1] = (times[-1][0], t_ns)

    def arriving(self, packets: Columns, rows: Ints) -> Ints:
        """Return the rows of packets without those to groups that the host had not joined."""
        target, t_ns = packets["dst_lo"][rows], packets["t_ns"][rows]
        to_group = (packets["dst_hi"][rows] == 0) & (target >= FIRST_GROUP) & (target < END_GROUP)
        kept = ~to_group | (packets["src_lo"][rows] == self._number)
        for group in np.unique(target[~kept]).tolist():
            for joined_ns, left_ns in self._times.get(group, ()):
                since = (target == group) & (t_ns >= joined_ns - REPORT_DELAY_NS)
                kept |= since if left_ns is None else since & (t_ns < left_ns)
        found: Ints = rows[kept]
        return found

    def rows(self) -> pa.RecordBatch:
        """Return the rows of `MEMBERSHIPS`."""
        rows = [
            {"host": self._host, "group": str(IPv4Address(group)), "joined_ns": joined_ns, "left_ns": left_ns}
            for group, times in self._times.items()
            for joined_ns, left_ns in times
        ]
        return pa.RecordBatch.from_pylist(rows, schema=MEMBERSHIPS)
