"""Decodes the messages of a reassembled stream, with the same table of fields as the nodes' codec.

For each window of frames and each message type, the fixed heads are gathered into one matrix, and its fields
are sliced into columns (`node.core.message_layout` defines the offsets). A frame whose body does not fit its
type is counted as malformed and skipped; later frames are not affected. A message is only emitted if all its
bytes were seen on the wire; its head must be in the capture, but its payload need not (snap length). For
nested messages a row has the innermost one, and the names of the others (`nested`).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from analysis.arrays import Bools, Bytes, Ints, offsets
from analysis.capture.pcap.files.byte_ranges import ByteRanges, ascending, join, no_pieces, no_ranges
from analysis.capture.pcap.files.format import column, gather
from analysis.capture.pcap.frames import FrameWalk, MessageFrames
from analysis.capture.pcap.nested import NUMBER_KINDS, InnermostMessages, open_nested
from analysis.capture.pcap.reassemble import SettledRange
from analysis.schemas import ENDS_COLUMNS, KEY_COLUMN, MESSAGES, ROWS_COLUMNS
from node.core.framing import HEADER_BYTES
from node.core.message_layout import KEY, WIDTHS, Codec, MessageLayout

_FIELD_COLUMNS = (
    "stream", "kind", "first_seq", "count", "request", "cnt", "next", "last", "configuration", *ENDS_COLUMNS,
)  # fmt: skip
_COVERED = "covered"

Emit = Callable[[str, pa.RecordBatch], None]
"""Takes a batch of the table of this name: messages, gaps or decoding."""


@dataclass(slots=True)
class DecodingCounts:
    """Counts of one stream; the columns of DECODING with the same names."""

    messages: int = 0
    malformed: int = 0
    unfinished_bytes: int = 0
    undecoded_bytes: int = 0
    stopped: str | None = None


@dataclass(frozen=True, slots=True)
class KnownRange:
    """The part of a stream in which messages are searched."""

    pieces: ByteRanges
    complete_ns: Ints
    repeated: Ints  # rows of (start, end), ascending
    hole: int  # offset of the stream's first gap

    @classmethod
    def nothing(cls) -> "KnownRange":
        """Return the empty range, before a stream's first part."""
        return cls(no_pieces(), np.zeros(0, np.int64), no_ranges(), np.iinfo(np.int64).max)

    def with_next(self, part: SettledRange) -> "KnownRange":
        """Return the range extended by the stream's next part."""
        return KnownRange(
            join((self.pieces, part.pieces)),
            np.concatenate((self.complete_ns, part.complete_ns)),
            ascending(np.concatenate((self.repeated, part.repeated))),
            min([self.hole, *part.missing[0][:1].tolist()]),
        )

    def after(self, position: int) -> "KnownRange":
        """Return the part of the range at `position` or later in the stream."""
        first = int(np.searchsorted(self.pieces.end, position, side="right"))
        return KnownRange(
            self.pieces.take(slice(first, None)),
            self.complete_ns[first:],
            self.repeated[self.repeated[:, 1] > position],
            self.hole,
        )


class MessageDecoder:
    """Decodes one stream, given in parts. names: the columns that are equal for all messages (capture, …)."""

    def __init__(self, data: Bytes, codec: Codec, names: Mapping[str, Any], *, synchronised: bool) -> None:
        self.counts = DecodingCounts()
        self._synchronised = synchronised
        self._codec = codec
        self._names = names
        self._walk = FrameWalk(data)
        self._known = KnownRange.nothing()

    def decode(self, part: SettledRange | None, *, ended: bool) -> Iterator[pa.RecordBatch]:
        """Decode the messages that the stream's next part completes, and count. ended: no part follows."""
        if part is not None:
            self._known = self._known.with_next(part)
        known = self._known
        if self._synchronised:
            for frames in self._walk.frames(known.pieces, ended=ended):
                batch = _decode_frames(frames, known, self._codec, self._names, self.counts)
                self.counts.messages += batch.num_rows
                yield batch
            self.counts.stopped = self._walk.stopped
        elif known.pieces.start.size:
            self.counts.stopped = "the beginning of the connection is not in the capture"
        self._known = known.after(self._walk.position)
        if ended or self.counts.stopped:
            self._count_rest()

    def _count_rest(self) -> None:
        """Count the bytes after the last frame as undecoded or unfinished, and discard them."""
        pieces = self._known.pieces
        rest = int((pieces.end - np.maximum(pieces.start, self._walk.position)).sum())
        if self.counts.stopped:
            self.counts.undecoded_bytes += rest
        else:
            self.counts.unfinished_bytes += rest
        self._known = self._known.after(np.iinfo(np.int64).max)


def _decode_frames(
    frames: MessageFrames, known: KnownRange, codec: Codec, names: Mapping[str, Any], counts: DecodingCounts
) -> pa.RecordBatch:
    fits, readable = np.zeros((2, frames.start.size), np.bool_)
    inmost = open_nested(frames, codec)
    inner = inmost.frames
    types = [layout for kind, layout in sorted(codec.by_type.items()) if (inner.type == kind).any()]
    for layout in types:
        of_type = inner.type == layout.type
        fits |= of_type & _body_fits(layout, inner.length - HEADER_BYTES)
        readable |= of_type & (inner.known >= HEADER_BYTES + layout.head.size)
    seen = _seen_bytes(frames, known.pieces)
    whole = seen == frames.length
    counts.malformed += int((~fits).sum())
    counts.unfinished_bytes += int(seen[fits & ~whole].sum())
    counts.undecoded_bytes += int(seen[fits & whole & ~readable].sum())
    chosen = np.flatnonzero(fits & whole & readable)
    columns = seen_columns(frames.start[chosen], frames.length[chosen], known)
    return message_batch(names, columns | _heads(inmost, types, chosen), chosen.size)


def _body_fits(layout: MessageLayout, body: Ints) -> Bools:
    """Return whether bodies of these sizes fit the message: a fixed head, then nothing, bytes or rows."""
    size = layout.head.size + (layout.codec is not None)  # a nested message has at least its type
    fits: Bools = body == size if layout.tail is None else body >= size
    row_bytes = _row_bytes(layout)
    return fits & ((body - size) % row_bytes == 0) if row_bytes else fits


def _row_bytes(layout: MessageLayout) -> int:
    return sum(WIDTHS[field.format] for field in layout.row_fields)


def _seen_bytes(frames: MessageFrames, pieces: ByteRanges) -> Ints:
    """Return the number of bytes of each frame that were seen on the wire."""
    before = np.cumsum(pieces.length) - pieces.length

    def up_to(position: Ints) -> Ints:
        piece = np.searchsorted(pieces.start, position, side="right") - 1
        inside: Ints = np.minimum(position - pieces.start[piece], pieces.length[piece])
        return before[piece] + inside

    return up_to(frames.start + frames.length) - up_to(frames.start)


def message_batch(names: Mapping[str, Any], columns: Mapping[str, pa.Array], rows: int) -> pa.RecordBatch:
    """Return rows of MESSAGES. names: the columns equal in all rows. Columns in neither are null."""
    arrays = [
        _cast(columns[each.name], each.type)
        if each.name in columns
        else pa.repeat(names[each.name], rows)
        if each.name in names
        else pa.nulls(rows, each.type)
        for each in MESSAGES
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=MESSAGES)


def _cast(values: pa.Array, kind: pa.DataType) -> pa.Array:
    return values if values.type == kind else values.cast(kind, safe=False)


def seen_columns(start: Ints, length: Ints, known: KnownRange) -> dict[str, pa.Array]:
    """Return columns of messages: stream offset, length, times, and whether bytes were retransmitted."""
    pieces, (repeated_start, repeated_end) = known.pieces, known.repeated.T
    first = np.searchsorted(pieces.start, start, side="right") - 1
    last = np.searchsorted(pieces.start, start + length - 1, side="right") - 1
    reach = np.maximum.accumulate(np.concatenate(([-1], repeated_end)))
    again = reach[np.searchsorted(repeated_start, start + length)] > start
    return {
        "stream_offset": pa.array(start),
        "length": pa.array(length),
        "t_first_ns": pa.array(pieces.t_ns[first]),
        "t_complete_ns": pa.array(known.complete_ns[last], mask=start + length > known.hole),
        "retransmitted": pa.array(again),
    }


def _heads(inmost: InnermostMessages, types: list[MessageLayout], chosen: Ints) -> dict[str, pa.Array]:
    """Return the columns that come from fixed heads and from rows."""
    frames = inmost.frames
    values = {name: np.zeros(chosen.size, np.int64) for name in _FIELD_COLUMNS}
    absent = {name: np.ones(chosen.size, np.bool_) for name in _FIELD_COLUMNS}
    for name, (of_outer, missing) in inmost.ends.items():
        values[name], absent[name] = of_outer[chosen], missing[chosen]
    labels = pa.array([layout.name for layout in types], pa.string())
    label = np.zeros(chosen.size, np.int64)
    tail_bytes = frames.length[chosen] - HEADER_BYTES
    for number, layout in enumerate(types):
        where = np.flatnonzero(frames.type[chosen] == layout.type)
        label[where] = number
        tail_bytes[where] -= layout.head.size
        heads = gather(frames.content, frames.at[chosen[where]] + HEADER_BYTES, layout.head.size)
        for field in layout.fields:
            for name in field.columns if field.format != KEY else ():
                if name in values:
                    values[name][where] = column(heads, field.offset, NUMBER_KINDS[field.format])
                    absent[name][where] = False
    columns = {name: pa.array(values[name], mask=absent[name]) for name in _FIELD_COLUMNS}
    return columns | {
        "type": labels.take(pa.array(label)),
        "within": inmost.within.take(pa.array(chosen)),
        "payload_length": pa.array(tail_bytes),
        "covered": _covered(frames, types, chosen, values["count"]),
        "key": _keys(frames, types, chosen),
        **{name: _rows(frames, types, chosen, name) for name in ROWS_COLUMNS},
    }


def _keys(frames: MessageFrames, types: list[MessageLayout], chosen: Ints) -> pa.Array:
    """Return the column of keys; null for messages without one."""
    width = WIDTHS[KEY]
    found, there = np.zeros((chosen.size, width), np.uint8), np.zeros(chosen.size, np.bool_)
    for layout in types:
        for field in layout.fields:
            if field.format == KEY and KEY_COLUMN in field.columns:
                where = np.flatnonzero(frames.type[chosen] == layout.type)
                at = frames.at[chosen[where]] + HEADER_BYTES + field.offset
                found[where], there[where] = gather(frames.content, at, width), True
    valid = pa.py_buffer(np.packbits(there, bitorder="little").tobytes())
    keys = pa.Array.from_buffers(pa.binary(width), chosen.size, [valid, pa.py_buffer(found.tobytes())])
    return keys.cast(pa.binary())


def _covered(frames: MessageFrames, types: list[MessageLayout], chosen: Ints, count: Ints) -> pa.Array:
    """Return the number of sequence numbers that each batch of events covers: a field, or a sum of rows."""
    found, absent = np.zeros(chosen.size, np.int64), np.ones(chosen.size, np.bool_)
    for layout in types:
        if not (layout.summed(_COVERED) or any(_COVERED in field.columns for field in layout.fields)):
            continue
        where = np.flatnonzero(frames.type[chosen] == layout.type)
        found[where], absent[where] = count[where], False
        if layout.summed(_COVERED):
            first = HEADER_BYTES + layout.head.size
            there = frames.known[chosen[where]] >= first + 4 * count[where]
            absent[where[~there]] = True
            some = where[there]
            rows, places = _row_places(frames.at[chosen[some]] + first, count[some], 4)
            reaches = column(gather(frames.content, places, 4), 0, NUMBER_KINDS["I"]).astype(np.int64)
            found[some] = np.bincount(rows, reaches, minlength=some.size).astype(np.int64)
    return pa.array(found, mask=absent)


def _row_places(first: Ints, counts: Ints, row_bytes: int) -> tuple[Ints, Ints]:
    """Return the owner and the offset of each row, given the offset of each owner's first row."""
    owner = np.repeat(np.arange(counts.size), counts)
    return owner, first[owner] + offsets(counts) * row_bytes


def _rows(frames: MessageFrames, types: list[MessageLayout], chosen: Ints, name: str) -> pa.Array:
    """Return a list column from messages with rows for it; null for others and if bytes are missing.

    A list's element has the column's struct fields of a row, or the row's first field.
    """
    kind = MESSAGES.field(name).type
    null, counts = np.ones(chosen.size, np.bool_), np.zeros(chosen.size, np.int64)
    places, values = [], []  # owner and fields of rows
    having = [layout for layout in types if layout.row is not None and layout.row.column == name]
    if not having:
        return pa.nulls(chosen.size, kind)
    for layout in having:
        wanted = list(layout.row_fields[:1])
        if pa.types.is_struct(kind.value_type):
            by_name = {field.columns[0]: field for field in layout.row_fields if field.columns}
            wanted = [by_name[field.name] for field in kind.value_type]
        where = np.flatnonzero(frames.type[chosen] == layout.type)
        where = where[frames.known[chosen[where]] == frames.length[chosen[where]]]
        first, row_bytes = HEADER_BYTES + layout.head.size, _row_bytes(layout)
        counts[where] = (frames.length[chosen[where]] - first) // row_bytes
        null[where] = False
        owner, at = _row_places(frames.at[chosen[where]] + first, counts[where], row_bytes)
        rows = gather(frames.content, at, row_bytes)
        places.append(where[owner])
        values.append(
            [column(rows, field.offset, NUMBER_KINDS[field.format]).astype(np.int64) for field in wanted]
        )
    order = np.argsort(np.concatenate([np.zeros(0, np.int64), *places]), kind="stable")
    offsets = pa.array(np.concatenate(([0], np.cumsum(counts))), pa.int32())
    inner = kind.value_type
    types_of = [field.type for field in inner] if pa.types.is_struct(inner) else [inner]
    columns = [
        pa.array(np.concatenate([np.zeros(0, np.int64), *(each[number] for each in values)])[order]).cast(
            form, safe=False
        )
        for number, form in enumerate(types_of)
    ]
    content = (
        pa.StructArray.from_arrays(columns, fields=list(inner)) if pa.types.is_struct(inner) else columns[0]
    )
    return pa.ListArray.from_arrays(offsets, content, type=kind, mask=pa.array(null))
