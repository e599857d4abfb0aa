"""TCP connections of one capture, and their silences, in one pass with bounded memory.

Packets are taken in batches, sorted by connection, without a loop over packets; numbers of earlier batches
are in a table of states. A tap may be anywhere on the path, so the round trip is measured from a SYN to the
acknowledgement of its answer, which gives the whole one at every tap.

A *silence* is a time in which a connection made no progress: no packet brought bytes or an acknowledgement
beyond all earlier ones. Its `tries` are the packets sent meanwhile that repeated something: with tries the
path or the peer failed. Acknowledgements and single bytes do not count as tries, since idle connections send
them to keep alive.

Ends are found by a 64-bit hash of their addresses and ports.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from analysis.arrays import NEVER, NS_PER_S, Bools, Ints, begins, concatenated
from analysis.capture.pcap.fields import DIRECTION, TCP, Columns
from analysis.capture.pcap.reassemble import ACK, FIN, RST, SYN
from analysis.capture.time_range import EVER, TimeRange
from analysis.sql.functions import ip
from analysis.taps.opening import Tap
from analysis.timelines.links.link_segments import hashes
from analysis.timelines.progress import Progress, ends_in_order
from analysis.timelines.schemas import CONNECTIONS, SILENCES

COLUMNS: Final = (*DIRECTION, "t_ns", "proto", "seq", "ack", "flags", "payload_length", "wire_length")
OPEN_MAX: Final = 200_000
"""Connections followed at once. Beyond it, those whose last packet is oldest count as ended."""
SILENCE_S: Final = 1.0
"""Silences of this length and more are rows."""
UNKNOWN: Final = -1
_SUMS: Final = ("packets", "bytes", "wire", "again")
_STATE: Final = np.dtype(
    [
        ("hash", np.uint64), ("ends", np.int64, 6), *((name, np.int64, 2) for name in _SUMS),
        ("first", np.int64), ("last", np.int64), ("progress", np.int64), ("tries", np.int64),
        ("plain", np.int64), ("longest", np.int64), ("longest_from", np.int64), ("longest_tries", np.int64),
        ("syn_seq", np.int64, 2), ("syn", np.int64), ("syns", np.int64), ("answer", np.int64),
        ("answers", np.int64), ("round_trip", np.int64), ("client", np.int64), ("closed", np.int64),
        ("closed_by", np.int64), ("is_reset", np.bool_), ("had_reset", np.bool_), ("replaced", np.int64),
    ]
)  # fmt: skip
"""A connection. Pairs: from the lower end, from the higher end. Times in ns, or UNKNOWN."""


class ConnectionTracker:
    """Follows the TCP connections of a capture and gives the rows of CONNECTIONS and SILENCES."""

    def __init__(self, tap: Tap, times: TimeRange = EVER, silence_s: float = SILENCE_S) -> None:
        """Begin without connections. silence_s: the least silence that is a row."""
        self._tap, self._times = tap, times
        self._silence_ns = int(silence_s * 1e9)
        self._slots: dict[int, int] = {}
        self._states = np.zeros(0, _STATE)
        self._used = 0
        self._data, self._acks = Progress(), Progress()
        self._silences: list[pa.Table] = []
        self.retransmissions: Counter[int] = Counter()
        """Retransmitted segments, by whole seconds of CLOCK_REALTIME."""

    def run(self) -> Iterator[tuple[pa.Table, pa.Table]]:
        """Read the capture; yield rows of CONNECTIONS and of SILENCES, as far as they are known.

        A connection that was not closed is silent until another one takes its ports or the capture ends.
        """
        end_ns = 0
        for columns in self._tap.packets(self._times, COLUMNS):
            end_ns = max(end_ns, int(columns["t_ns"].max()))
            self._take(columns)
            ended = self._retire(OPEN_MAX // 2) if self._used > OPEN_MAX else CONNECTIONS.empty_table()
            yield ended, self._new_silences()
        states = self._states[: self._used]
        slots = np.flatnonzero((states["closed"] == UNKNOWN) & (states["progress"] != UNKNOWN))
        since, replaced = states["progress"][slots], states["replaced"][slots]
        until = np.maximum(np.where(replaced == UNKNOWN, end_ns, replaced), since)
        self._note_silences(slots, since, until, states["tries"][slots])
        yield self._retire(0), self._new_silences()

    def _new_silences(self) -> pa.Table:
        found, self._silences = self._silences, []
        return concatenated(found, SILENCES)

    def _take(self, columns: Columns) -> None:
        """Take packets in the order of the capture."""
        has_ports = (columns["sport"] != 0) | (columns["dport"] != 0)  # its TCP header was captured
        rows = np.flatnonzero((columns["proto"] == TCP) & has_ports)
        if not rows.size:
            return
        here = {name: columns[name][rows].astype(np.int64) for name in COLUMNS}
        ends, is_low = ends_in_order([here[name] for name in DIRECTION])
        key = hashes(np.stack(ends, axis=1))
        order = np.argsort(key, kind="stable")
        here = {name: values[order] for name, values in here.items()} | {"side": (~is_low)[order].astype(int)}
        slot = self._placed(here, key[order], np.stack(ends, axis=1)[order])
        self._measure(here, slot)
        self._note_handshakes(here, slot)
        self._note_ends(here, slot)

    def _placed(self, here: dict[str, Ints], key: npt.NDArray[np.uint64], ends: Ints) -> Ints:
        """Return the slot of each row. A SYN that an older connection of these ends cannot have sent begins
        another one.
        """
        first = np.flatnonzero(begins(key))
        slots = [self._slot_of(int(key[row]), ends[row]) for row in first.tolist()]
        after = np.append(first[1:], key.size)
        slot = np.repeat(np.array(slots, np.int64), after - first)
        is_syn = here["flags"] & SYN != 0
        others = np.cumsum(~is_syn)
        begun = dict(zip(slots, first.tolist(), strict=True))
        for row in np.flatnonzero(is_syn & (here["flags"] & ACK == 0)).tolist():
            mine, side, seq = int(slot[row]), int(here["side"][row]), int(here["seq"][row])
            state = self._states[mine]
            since = begun[mine]
            plain = state["plain"] + others[row] - others[since] + (not is_syn[since])
            if state["syn_seq"][side] != seq and (state["syn_seq"][side] != UNKNOWN or plain):
                state["replaced"] = here["t_ns"][row]
                del self._slots[int(key[row])]
                mine = self._slot_of(int(key[row]), ends[row])
                slot[row : after[np.searchsorted(first, row, "right") - 1]] = mine
                begun[mine] = row
                state = self._states[mine]
            state["syn_seq"][side] = seq
            if state["client"] == UNKNOWN:
                state["client"] = side
            state["syn"], state["syns"] = here["t_ns"][row], state["syns"] + 1
        return slot

    def _slot_of(self, key: int, ends: Ints) -> int:
        found = self._slots.get(key)
        if found is not None:
            return found
        if self._used == self._states.size:
            self._states = np.concatenate((self._states, np.zeros(max(self._used, 1024), _STATE)))
        slot = self._slots[key] = self._used
        self._used += 1
        state = self._states[slot]
        for name in (
            "syn_seq", "client", "closed", "closed_by", "progress", "answer", "round_trip", "syn", "replaced",
        ):  # fmt: skip
            state[name] = UNKNOWN
        state["hash"], state["ends"], state["first"], state["last"] = key, ends, NEVER, -NEVER
        return slot

    def _measure(self, here: dict[str, Ints], slot: Ints) -> None:
        """Add up the packets of each connection, and note when it made progress."""
        states, t_ns, flags = self._states, here["t_ns"], here["flags"]
        start = np.flatnonzero(begins(slot))
        mine = slot[start]
        states["first"][mine] = np.minimum(states["first"][mine], np.minimum.reduceat(t_ns, start))
        states["last"][mine] = np.maximum(states["last"][mine], np.maximum.reduceat(t_ns, start))
        states["plain"][mine] += np.add.reduceat((flags & SYN == 0).astype(np.int64), start)
        progressed, again = self._progressed(here, slot)
        self.retransmissions.update((t_ns[again] // NS_PER_S).tolist())
        group = np.repeat(np.arange(start.size), np.diff(np.append(start, slot.size))) * 2 + here["side"]
        ones = np.ones(slot.size)
        for name, values in zip(
            _SUMS, (ones, here["payload_length"], here["wire_length"], again), strict=True
        ):
            sums = np.bincount(group, values, start.size * 2).astype(np.int64)
            states[name][mine] += sums.reshape(-1, 2)
        tries = (here["payload_length"] > 1) | (flags & (SYN | FIN | RST) != 0)
        self._note_progress(t_ns, slot, start, progressed, tries & ~progressed)

    def _progressed(self, here: dict[str, Ints], slot: Ints) -> tuple[Bools, Bools]:
        """Return which packets have new data or acknowledgements, and which only data that was seen before.

        A single byte that was seen before is a keep-alive or a window's probe.
        """
        flags, direction = here["flags"], slot * 2 + here["side"]
        taken = here["payload_length"] + (flags & SYN != 0) + (flags & FIN != 0)
        found, again = np.zeros(slot.size, np.bool_), np.zeros(slot.size, np.bool_)
        rows = np.flatnonzero(flags & RST != 0)
        rows = rows[begins(slot[rows]) & ~self._states["had_reset"][slot[rows]]]
        found[rows] = self._states["had_reset"][slot[rows]] = True
        rows = np.flatnonzero((taken > 0) & (flags & RST == 0))
        number = (here["seq"] + taken)[rows]
        found[rows], _ = self._data.take(direction[rows], number, here["seq"][rows])
        again[rows] = ~found[rows] & (here["payload_length"][rows] > 1)
        rows = np.flatnonzero((flags & ACK != 0) & (flags & RST == 0))
        acked = here["ack"][rows]
        found[rows] |= self._acks.take(direction[rows], acked, acked)[0]
        return found, again

    def _note_progress(self, t_ns: Ints, slot: Ints, start: Ints, progressed: Bools, tried: Bools) -> None:
        states, rows = self._states, np.flatnonzero(progressed)
        of, first = slot[rows], begins(slot[rows])
        place, end = np.searchsorted(start, rows, "right") - 1, np.append(start[1:], slot.size)
        tried_before = np.concatenate(([0], np.cumsum(tried)))
        before = np.concatenate(([0], t_ns[rows[:-1]]))
        tries = np.diff(tried_before[rows], prepend=0)
        before[first] = states["progress"][of[first]]
        tries[first] = (tried_before[rows] - tried_before[start[place]])[first] + states["tries"][of[first]]
        before = np.where(before == UNKNOWN, t_ns[rows], before)
        self._note_silences(of, before, t_ns[rows], tries)
        states["tries"][slot[start]] += tried_before[end] - tried_before[start]
        last = np.flatnonzero(np.append(first[1:], True)) if rows.size else rows
        states["progress"][of[last]] = t_ns[rows[last]]
        states["tries"][of[last]] = tried_before[end[place[last]]] - tried_before[rows[last]]

    def _note_silences(self, slot: Ints, from_ns: Ints, to_ns: Ints, tries: Ints) -> None:
        """Note silences, sorted by connection: the longest of each, and rows for long ones."""
        if not slot.size:
            return
        states, lasted, first = self._states, to_ns - from_ns, np.flatnonzero(begins(slot))
        longest = np.repeat(np.maximum.reduceat(lasted, first), np.diff(np.append(first, slot.size)))
        rows = np.flatnonzero((lasted == longest) & (lasted > states["longest"][slot]))
        rows = rows[begins(slot[rows])]
        of = slot[rows]
        for name, values in (("longest", lasted), ("longest_from", from_ns), ("longest_tries", tries)):
            states[name][of] = values[rows]
        rows = np.flatnonzero(lasted >= self._silence_ns)
        client, server = self._named(states[slot[rows]])
        columns = {
            "capture": pa.repeat(self._tap.name, rows.size),
            **client,
            **server,
            "from_ns": pa.array(from_ns[rows]),
            "to_ns": pa.array(to_ns[rows]),
            "silence_s": pa.array(lasted[rows] / 1e9),
            "tries": pa.array(tries[rows]),
        }
        self._silences.append(pa.table([columns[name] for name in SILENCES.names], SILENCES))

    def _note_handshakes(self, here: dict[str, Ints], slot: Ints) -> None:
        """Note answers to SYNs, and the round trip when the client acknowledges."""
        states, flags = self._states, here["flags"]
        for row in np.flatnonzero((flags & SYN != 0) & (flags & ACK != 0)).tolist():
            state = states[slot[row]]
            state["answers"] += 1
            if state["answer"] == UNKNOWN:
                state["answer"] = here["t_ns"][row]
                if state["client"] == UNKNOWN:
                    state["client"] = 1 - here["side"][row]
        waiting = (
            (states["answer"] != UNKNOWN) & (states["round_trip"] == UNKNOWN) & (states["syn"] != UNKNOWN)
        )
        rows = np.flatnonzero(waiting[slot] & (flags & SYN == 0))
        rows = rows[(here["side"][rows] == states["client"][slot[rows]])]
        rows = rows[here["t_ns"][rows] >= states["answer"][slot[rows]]]
        if rows.size:
            rows = rows[begins(slot[rows])]
            states["round_trip"][slot[rows]] = here["t_ns"][rows] - states["syn"][slot[rows]]

    def _note_ends(self, here: dict[str, Ints], slot: Ints) -> None:
        """Note the first FIN or RST of each connection."""
        rows = np.flatnonzero(here["flags"] & (FIN | RST) != 0)
        rows = rows[self._states["closed"][slot[rows]] == UNKNOWN]
        if rows.size:
            rows = rows[begins(slot[rows])]
            of = slot[rows]
            self._states["closed"][of] = here["t_ns"][rows]
            self._states["closed_by"][of] = here["side"][rows]
            self._states["is_reset"][of] = here["flags"][rows] & RST != 0

    def _retire(self, kept: int) -> pa.Table:
        """Return the rows of all connections but the latest, which stay."""
        states = self._states[: self._used]
        order = np.argsort(states["last"], kind="stable")
        gone, stay = np.sort(order[: self._used - kept]), np.sort(order[self._used - kept :])
        found = self._rows(states[gone])
        for progress in (self._data, self._acks):
            progress.keep((stay[:, None] * 2 + np.arange(2)).ravel())
        place = {int(old): new for new, old in enumerate(stay.tolist())}
        self._slots = {key: place[slot] for key, slot in self._slots.items() if slot in place}
        self._states, self._used = states[stay].copy(), len(stay)
        return found

    def _rows(self, states: np.ndarray) -> pa.Table:
        client, server = self._named(states)
        is_low = _client(states) == 0

        def ways(name: str) -> tuple[pa.Array, pa.Array]:
            there, back = np.where(is_low, states[name].T, states[name].T[::-1])
            return pa.array(there), pa.array(back)

        def known(values: npt.NDArray[Any], wanted: Bools) -> pa.Array:
            return pa.array(values, mask=~wanted)

        names = ("packets", "bytes", "wire_bytes", "retransmissions")
        sums = {
            f"{name}_{way}": values
            for name, of in zip(names, _SUMS, strict=True)
            for way, values in zip(("to_server", "to_client"), ways(of), strict=True)
        }
        sure = (states["round_trip"] != UNKNOWN) & (states["syns"] == 1) & (states["answers"] == 1)
        closed = states["closed"] != UNKNOWN
        by = np.where(states["closed_by"] == _client(states), "client", "server")
        columns = {
            "capture": pa.repeat(self._tap.name, len(states)),
            **client,
            **server,
            "start_ns": pa.array(states["first"]),
            "end_ns": pa.array(states["last"]),
            "opened": pa.array(states["syn"] != UNKNOWN),
            "answered": pa.array(states["answer"] != UNKNOWN),
            "round_trip_ms": known(states["round_trip"] / 1e6, sure),
            "closed_ns": known(states["closed"], closed),
            "closed_by": known(by, closed),
            "closed_how": known(np.where(states["is_reset"], "RST", "FIN"), closed),
            **sums,
            "silence_s": pa.array(states["longest"] / 1e9),
            "silence_from_ns": known(states["longest_from"], states["longest"] > 0),
            "silence_tries": pa.array(states["longest_tries"]),
        }
        return pa.table([columns[name] for name in CONNECTIONS.names], CONNECTIONS).sort_by("start_ns")

    def _named(self, states: np.ndarray) -> tuple[dict[str, pa.Array], dict[str, pa.Array]]:
        """Return the addresses and ports of clients and of servers."""
        is_low = (_client(states) == 0)[:, None]
        low, high = states["ends"][:, :3], states["ends"][:, 3:]
        client, server = np.where(is_low, low, high), np.where(is_low, high, low)
        first, second = (
            {
                name: ip(pa.array(ends[:, 0]), pa.array(ends[:, 1])),
                f"{name}_port": pa.array(ends[:, 2].astype(np.int32)),
            }
            for name, ends in (("client", client), ("server", server))
        )
        return first, second


def _client(states: np.ndarray) -> Ints:
    """Return which end is the client: the one that sent the SYN, or else the one with the higher port."""
    guessed = (states["ends"][:, 5] >= states["ends"][:, 2]).astype(np.int64)
    return np.where(states["client"] != UNKNOWN, states["client"], guessed)
