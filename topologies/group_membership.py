"""The multicast groups that a host has joined, from its own IGMPv3 reports (RFC 3376, sections 4.2 and 5.1).

Linux reports a change within two ticks, and again up to a second later. Reports go to a group of their own,
so hosts do not suppress each other's, as with IGMPv2. Whether a host wants only some sources is ignored: it
has joined a group if it accepts any source.
"""

from collections.abc import Iterator
from struct import error, unpack_from

IGMP = 2
"""The protocol's number in the IP header."""
REPORT_GROUP = "224.0.0.22"
FIRST_GROUP, END_GROUP = 0xE000_0000, 0xF000_0000
"""The addresses of groups as numbers: 224.0.0.0 to 239.255.255.255 (RFC 1112, section 4)."""

_REPORT = 0x22
_IS_INCLUDE, _IS_EXCLUDE, _TO_INCLUDE, _TO_EXCLUDE, _ALLOW, _BLOCK = range(1, 7)
_Record = tuple[int, int, frozenset[int]]


class JoinedGroups:
    """The groups that one host has joined by now."""

    def __init__(self) -> None:
        self._sources: dict[int, frozenset[int] | None] = {}  # accepted ones by group; None: all but some

    def take(self, report: bytes) -> list[tuple[int, bool]]:
        """Read an IGMP message of the host; returns the groups joined (True) or left by it."""
        found = []
        for kind, group, sources in _records(report):
            before = self._sources.get(group, frozenset())
            after = _sources_after(kind, before, sources)
            self._sources[group] = after
            if (before == frozenset()) != (after == frozenset()):
                found.append((group, after != frozenset()))
        return found


def _records(report: bytes) -> Iterator[_Record]:
    """Yield the group records of a report, up to the first that is cut off: kind, group, sources."""
    if len(report) < 8 or report[0] != _REPORT:
        return
    at = 8
    for _ in range(unpack_from(">H", report, 6)[0]):
        try:
            kind, further_words, count, group = unpack_from(">BBHI", report, at)
            sources = frozenset(unpack_from(f">{count}I", report, at + 8))
        except error:
            return
        yield kind, group, sources
        at += 8 + 4 * (count + further_words)


def _sources_after(
    kind: int, before: frozenset[int] | None, sources: frozenset[int]
) -> frozenset[int] | None:
    """Return the sources that a host accepts after a record; None: all but some."""
    if kind in {_IS_EXCLUDE, _TO_EXCLUDE}:
        return None
    if kind in {_IS_INCLUDE, _TO_INCLUDE}:
        return sources
    if before is None or kind not in {_ALLOW, _BLOCK}:
        return before
    return before | sources if kind == _ALLOW else before - sources
