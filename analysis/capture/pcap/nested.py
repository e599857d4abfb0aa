"""Nested messages: finds the innermost message of each frame, and the messages around it.

All frames of a window are opened at once, level by level. If the head of an inner message was not captured,
the outer message counts as the innermost. A completely captured message that cannot be opened (it is empty,
or nested deeper than nodes accept) has no type.
"""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from analysis.arrays import Ints
from analysis.capture.pcap.files.format import column, gather
from analysis.capture.pcap.frames import MessageFrames
from analysis.schemas import ENDS_COLUMNS
from node.core.framing import HEADER_BYTES
from node.core.message_layout import NESTED_MAX, WIDTHS, Codec, MessageLayout

NUMBER_KINDS = {
    "B": "u1",
    "H": ">u2",
    "I": ">u4",
    "Q": ">u8",
    "d": ">f8",
}  # NumPy types of numeric fields; keys remain bytes
_TYPES = 256
_NO_TYPE = -1


@dataclass(frozen=True, slots=True)
class InnermostMessages:
    """The innermost messages, each as if its frame began HEADER_BYTES before its body.

    within: the names of the messages around it, outermost first; null if there are none. ends: columns taken
    from the messages around it: (values, absent).
    """

    frames: MessageFrames
    within: pa.Array
    ends: dict[str, tuple[Ints, np.typing.NDArray[np.bool_]]]


def open_nested(frames: MessageFrames, codec: Codec) -> InnermostMessages:
    """Open the messages that contain other messages."""
    size = frames.start.size
    ends = {name: (np.zeros(size, np.int64), np.ones(size, np.bool_)) for name in ENDS_COLUMNS}
    holders = [each for each in codec.by_type.values() if each.codec and (frames.type == each.type).any()]
    if not holders:
        return InnermostMessages(frames, pa.nulls(size, pa.string()), ends)
    head_bytes = np.zeros(_TYPES, np.int64)
    head_bytes[list(codec.by_type)] = [each.head.size for each in codec.by_type.values()]
    inner, path = replace(frames, type=frames.type.astype(np.int64)), np.zeros(size, np.int64)
    for level in range(NESTED_MAX + 1):
        inner, where = _next_level(inner, path, codec, head_bytes, ends)
        if level == NESTED_MAX:
            inner.type[where] = _NO_TYPE
    return InnermostMessages(inner, _names(path, codec), ends)


def _next_level(
    frames: MessageFrames,
    path: Ints,
    codec: Codec,
    head_bytes: Ints,
    ends: dict[str, tuple[Ints, np.typing.NDArray[np.bool_]]],
) -> tuple[MessageFrames, Ints]:
    """Open one level, and return the frames and the indices of those opened. Updates `path` and `ends`."""
    kinds, at, length, known = (getattr(frames, name).copy() for name in ("type", "at", "length", "known"))
    found = [np.zeros(0, np.int64)]
    for layout in codec.by_type.values():
        if layout.codec is None:
            continue
        shift = layout.head.size + 1
        where = np.flatnonzero((frames.type == layout.type) & (frames.known >= HEADER_BYTES + shift))
        inside = column(gather(frames.content, frames.at[where] + HEADER_BYTES + shift - 1, 1), 0, "u1")
        rest = frames.known[where] - shift
        there = (rest == frames.length[where] - shift) | (rest >= HEADER_BYTES + head_bytes[inside])
        where, inside = where[there], inside[there]
        _keep_ends(frames, layout, where, ends)
        path[where] = path[where] * _TYPES + layout.type
        kinds[where] = inside
        at[where], length[where], known[where] = (
            at[where] + shift,
            length[where] - shift,
            known[where] - shift,
        )
        found.append(where)
    return replace(frames, type=kinds, at=at, length=length, known=known), np.concatenate(found)


def _keep_ends(
    frames: MessageFrames,
    layout: MessageLayout,
    where: Ints,
    ends: dict[str, tuple[Ints, np.typing.NDArray[np.bool_]]],
) -> None:
    for field in layout.fields:
        for name in set(field.columns) & set(ends):
            at = frames.at[where] + HEADER_BYTES + field.offset
            values, absent = ends[name]
            values[where] = column(
                gather(frames.content, at, WIDTHS[field.format]), 0, NUMBER_KINDS[field.format]
            )
            absent[where] = False


def _names(path: Ints, codec: Codec) -> pa.Array:
    """Return the names along each path of types."""
    paths, places = np.unique(path, return_inverse=True)
    texts = []
    for one in paths.tolist():
        kinds = one.to_bytes(NESTED_MAX + 1, "big").lstrip(b"\0")
        texts.append(" ".join(codec.by_type[kind].name for kind in kinds) or None)
    return pa.array(texts, pa.string()).take(pa.array(places))
