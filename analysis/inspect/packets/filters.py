"""Turns a query for messages into a filter of the table of transfers."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from analysis.capture.time_range import TimeRange
from analysis.messages.marked import known_codec
from analysis.schemas import KEY_COLUMN, LOST
from analysis.timelines.run_metadata import RunMetadata
from experiments.planned.plan import Plan
from node.core.message_layout import KEY_SHOWN, Codec
from topologies.errors import InputError

Mask = npt.NDArray[np.bool_]

SPAN_S = Decimal(1)  # seconds before and after a fault
DIGITS_MIN = 4  # fewest digits of a key; fewer may be a number
_ENDS = ("sender", "receiver")
_NUMBERS = ("first_seq", "count", "covered", "next", "last", "cnt", "advertised")
"""Columns that contain the events that a message carries or refers to."""


@dataclass(frozen=True, slots=True)
class Query:
    """A user's query. Times are seconds since time 0 of the run."""

    from_s: Decimal | None = None
    to_s: Decimal | None = None
    around: str | None = None
    span_s: Decimal = SPAN_S
    hosts: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    streams: tuple[int | str, ...] = ()
    topics: tuple[str, ...] = ()
    seq: tuple[int, int] | None = None
    lost: bool = False
    region_of: tuple[str, int] | None = None  # stream and event: messages that visit its region


@dataclass(frozen=True, slots=True)
class Filter:
    """Conditions on a transfer. Empty sets mean no condition.

    ends: for each set of hosts, the sender or the receiver must be in it. pairs: (sender, receiver) must be
    among them, unless None. keys: hexadecimal prefixes; the message's key must start with one. stream_keys:
    the keys of the streams, for messages that name no stream. seq: first and last sequence number; the
    message must carry or name one in this range.
    """

    times: TimeRange = field(default_factory=TimeRange)
    ends: tuple[frozenset[str], ...] = ()
    pairs: frozenset[tuple[str, str]] | None = None
    types: frozenset[str] = frozenset()
    streams: frozenset[int] = frozenset()
    stream_keys: frozenset[bytes] = frozenset()
    keys: frozenset[str] = frozenset()
    seq: tuple[int, int] | None = None
    lost: bool = False
    retransmitted: bool = False

    @property
    def of_messages(self) -> bool:
        """Whether packets are selected by the messages they carry, not only by times and places."""
        return bool(self.types or self.streams or self.keys or self.seq or self.lost or self.retransmitted)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of TRANSFERS that `mask` reads."""
        asked: list[str] = ["t_ns"]
        asked += _ENDS if self.ends or self.pairs is not None else ()
        asked += ["type", "within"] if self.types else []
        asked += ["stream", "advertised", KEY_COLUMN] if self.streams else []
        asked += [KEY_COLUMN] if self.keys else []
        asked += _NUMBERS if self.seq else ()
        asked += ["fate"] if self.lost else []
        asked += ["retransmitted"] if self.retransmitted else []
        return tuple(dict.fromkeys(asked))

    def may_be_from(self, first: str, last: str) -> bool:
        """Return whether transfers may match whose senders' names are in order from `first` to `last`."""
        return self.pairs is None or any(first <= sender <= last for sender, _ in self.pairs)

    def mask(self, rows: pa.RecordBatch) -> Mask:
        """Return which rows of TRANSFERS match."""
        found = self.times.within(rows.column("t_ns").to_numpy())
        for hosts in self.ends:
            found &= _among(rows.column("sender"), hosts) | _among(rows.column("receiver"), hosts)
        if self.pairs is not None:
            found &= _paired(rows, self.pairs)
        if self.types:
            found &= _among(rows.column("type"), self.types) | _in_one_of(rows.column("within"), self.types)
        if self.keys:
            found &= _keyed(rows.column(KEY_COLUMN), self.keys)
        if self.lost:
            found &= _among(rows.column("fate"), (LOST,))
        if self.retransmitted:
            found &= _true(rows.column("retransmitted"))
        if (self.streams or self.seq) and found.any():
            found &= self._streams_and_numbers(rows)
        return found

    def _streams_and_numbers(self, rows: pa.RecordBatch) -> Mask:
        """Return which rows match the streams and sequence numbers.

        A row matches itself or by a counter that it lists.
        """
        own = np.ones(rows.num_rows, np.bool_)
        counters = rows.column("advertised")
        listed = pc.list_flatten(counters)
        fits = np.ones(len(listed), np.bool_)
        if self.streams:
            stream = rows.column("stream")
            own &= _among(stream, self.streams)
            if self.stream_keys:
                own |= ~_true(stream.is_valid()) & _keyed(
                    rows.column(KEY_COLUMN), {key.hex() for key in self.stream_keys}
                )
            fits &= _among(pc.struct_field(listed, "stream"), self.streams)
        if self.seq:
            own &= _refers_to(rows, self.seq)
            cnt = pc.struct_field(listed, "cnt")
            fits &= _true(pc.and_(pc.greater_equal(cnt, self.seq[0]), pc.less_equal(cnt, self.seq[1])))
        own[pc.list_parent_indices(counters).to_numpy()[fits]] = True
        return own


def _refers_to(rows: pa.RecordBatch, seq: tuple[int, int]) -> Mask:
    """Return whether a message carries, requests, answers or advertises one of these sequence numbers."""
    first_seq, cnt = rows.column("first_seq"), rows.column("cnt")
    reach = pc.coalesce(rows.column("covered"), rows.column("count").cast(pa.int64()))
    end = pc.subtract(pc.add(first_seq, reach), 1)
    first = pc.coalesce(first_seq, rows.column("next"), cnt)
    last = pc.coalesce(end, rows.column("last"), cnt, first_seq)
    return _true(pc.and_(pc.less_equal(first, seq[1]), pc.greater_equal(last, seq[0])))


def _true(values: pa.BooleanArray) -> Mask:
    """Return booleans as a NumPy array; null is False."""
    found: Mask = pc.fill_null(values, fill_value=False).to_numpy(zero_copy_only=False)
    return found


def _among(values: pa.Array, wanted: Iterable[object]) -> Mask:
    return _true(pc.is_in(values, value_set=pa.array(wanted, values.type)))


def _in_one_of(within: pa.Array, wanted: Collection[str]) -> Mask:
    """Return whether a message was contained in one of these types."""
    there = pc.unique(within.drop_null()).to_pylist()
    return _among(within, [path for path in there if not set(path.split()).isdisjoint(wanted)])


def _keyed(values: pa.Array, digits: Collection[str]) -> Mask:
    """Return whether a key starts with one of these hexadecimal prefixes."""
    there = pc.unique(values.drop_null()).to_pylist()
    return _among(values, [key for key in there if key.hex().startswith(tuple(digits))])


def _paired(rows: pa.RecordBatch, pairs: Iterable[tuple[str, str]]) -> Mask:
    """Return whether (sender, receiver) is one of these pairs."""
    ends = pc.binary_join_element_wise(*(rows.column(end) for end in _ENDS), " ")
    return _among(ends, map(" ".join, pairs))


def codec_of(plan: Plan) -> Codec:
    """Return the messages of a run's system; an empty codec if they are unknown."""
    return known_codec(plan.declared) or Codec([])


def make_filter(asked: Query, metadata: RunMetadata, types: Collection[str]) -> Filter:
    """Return the filter of a query, checked against the run. types: message types of its system.

    Raises InputError.
    """
    regions = {host.region: None for host in metadata.hosts.values()}
    for region in asked.regions:
        _known("--region", region, "region", regions)
    if asked.region_of is not None:
        asked = _visits(asked, *asked.region_of, metadata)
    ends = [frozenset(_host(name, metadata) for name in asked.hosts)]
    streams = frozenset(stream_of(name, metadata, "--stream ") for name in asked.streams)
    ends.append(frozenset(host.name for host in metadata.hosts.values() if host.region in asked.regions))
    return Filter(
        times=_times(asked, metadata),
        ends=tuple(hosts for hosts, names in zip(ends, (asked.hosts, asked.regions), strict=True) if names),
        pairs=_pairs(asked.links, metadata) if asked.links else None,
        types=frozenset(_type(name, types) for name in asked.types),
        streams=streams,
        stream_keys=frozenset(key for stream in streams if (key := metadata.key_of(stream)) is not None),
        keys=frozenset(_digits(name, metadata) for name in asked.topics),
        seq=asked.seq,
        lost=asked.lost,
    )


def _visits(asked: Query, stream: str, seq: int, metadata: RunMetadata) -> Query:
    """Restrict a query to the messages by which an event travelled over the region that it affects."""
    visits = metadata.reading.visits
    if not visits:
        why = f"events of {metadata.declared.name} affect no region of a space: --stream and --seq choose one"
        raise InputError(f"--region-of {stream}/{seq}", None, "", why)
    number = stream_of(stream, metadata, "--region-of ")
    types = tuple(name for name in asked.types if _type(name, visits) in visits) or visits
    return replace(asked, streams=(number,), seq=(seq, seq), types=types)


def _times(asked: Query, metadata: RunMetadata) -> TimeRange:
    if asked.around is None:
        _check_begin(asked.from_s, metadata)
        return TimeRange(*(_moment(at_s, metadata) for at_s in (asked.from_s, asked.to_s)))
    faults = {fault.name: fault for fault in metadata.faults}
    _known("--around", asked.around, "fault", faults)
    at_ns = faults[asked.around].applied_ns
    if at_ns is None:
        raise InputError(f"--around {asked.around}", None, "", "this fault never took effect in this run")
    span_ns = round(asked.span_s * 10**9)
    return TimeRange(at_ns - span_ns, at_ns + span_ns)


def _check_begin(from_s: Decimal | None, metadata: RunMetadata) -> None:
    """Reject a start after the end of the run; if its end is unknown, accept any."""
    ends_ns = (metadata.stopped_ns, metadata.drained_ns, metadata.ended_ns)
    end_s = max((metadata.seconds(t_ns) for t_ns in ends_ns if t_ns is not None), default=None)
    if from_s is not None and end_s is not None and from_s > end_s:
        raise InputError(f"--from {from_s}", None, "", f"this run ended at {end_s:.3f} s")


def _moment(at_s: Decimal | None, metadata: RunMetadata) -> int | None:
    return None if at_s is None else metadata.zero_ns + round(at_s * 10**9)


def _host(name: str, metadata: RunMetadata) -> str:
    """Return the name of a host, given by its own name or by its process's, as r2/proxy-0."""
    name = metadata.host_of.get(name, name)
    _known("--host", name, "host", metadata.hosts)
    return name


def stream_of(name: int | str, metadata: RunMetadata, option: str = "") -> int:
    """Return a stream given by number, as 2 or s2, by name, or by the region that owns it (its first stream).

    option: the text before the name in errors. Raises InputError, with the known streams, for another name.
    """
    owner = metadata.owner
    known = {region: stream for stream, region in sorted(owner.items(), reverse=True)}
    known |= {its_name: stream for stream, its_name in metadata.stream_names.items()}
    if name in known:
        return known[str(name)]
    number = str(name).removeprefix("s")
    if number.isdecimal() and int(number) in owner:
        return int(number)
    streams = [f"{stream} ({metadata.stream_names.get(stream, owner[stream])})" for stream in sorted(owner)]
    raise _unknown(f"{option}{name}", "stream", streams)


def _digits(topic: str, metadata: RunMetadata) -> str:
    """Return the key prefix of a topic, given as digits or by the number or name of a stream."""
    keys = {stream: key.hex() for stream in metadata.owner if (key := metadata.key_of(stream)) is not None}
    wanted = topic.lower()
    if not keys:
        raise InputError(
            f"--topic {topic}", None, "", "the messages of this run's system name no topics by keys"
        )
    if len(wanted) >= DIGITS_MIN and any(key.startswith(wanted) for key in keys.values()):
        return wanted
    try:
        return keys[stream_of(topic, metadata)]
    except InputError:
        names = metadata.stream_names
        there = [f"{key[:KEY_SHOWN]} ({names.get(stream, stream)})" for stream, key in sorted(keys.items())]
        raise _unknown(f"--topic {topic}", "topic", there) from None


def _type(name: str, types: Collection[str]) -> str:
    wanted = name.upper().replace("-", "_")
    _known("--type", wanted, "type of message", types)
    return wanted


def _pairs(links: Iterable[str], metadata: RunMetadata) -> frozenset[tuple[str, str]]:
    """Return the (sender, receiver) pairs whose direct route crosses these links. r3-r2 equals r2-r3."""
    named = {name: name for name, _ in metadata.periods}
    turned = {"-".join(reversed(hop)): way[0] for hop, way in metadata.link_of.items()}
    for link in links:
        if link not in turned:
            _known("--link", link, "link between regions", named)
    asked = {named.get(link) or turned[link] for link in links}
    hops = {hop for hop, way in metadata.direct.items() if way[0] in asked}
    return frozenset(
        (sender.name, receiver.name)
        for sender in metadata.hosts.values()
        for receiver in metadata.hosts.values()
        if (sender.region, receiver.region) in hops
    )


def _known(option: str, name: object, kind: str, names: Iterable[object]) -> None:
    there = [str(each) for each in names]
    if str(name) not in there:
        raise _unknown(f"{option} {name}", kind, there)


def _unknown(asked: str, kind: str, there: Collection[str]) -> InputError:
    known = f"known are {', '.join(there)}" if there else "there are none in this run"
    return InputError(asked, None, "", f"no such {kind}: {known}")
