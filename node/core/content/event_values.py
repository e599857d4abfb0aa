"""Values of the events of a `content` workload, in blocks or one by one, with the same result.

Values are drawn as the attributes specify, or are stock quotes, or rows of a file. The values of an event
depend only on the workload, the stream's seed and the event's number: a block equals what a publisher
publishes one by one, and a publisher may begin anywhere.
"""

import base64
import zlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Self

import numpy as np

from node.core.content.content import UNSPECIFIED, attributes_of
from node.core.content.stock_quotes import Quotes, quotes
from node.core.content.value_distributions import Distribution, Floats, ValueDraws
from node.core.specification import NodeSpec

BLOCK_EVENTS = 1024
"""Events of a block; each block has its own generator."""
ROWS_BYTES_MAX = 64 << 20
"""Limit on unpacked rows."""


class EventValues:
    """The events of one stream, numbered from 0. stream, streams: this stream takes every `streams`-th quote
    or row, so that a run's streams together have all; after the last one the first follows again.

    rows: those of the stream, possibly packed, if the workload's events are rows of a file.
    """

    def __init__(
        self,
        workload: Mapping[str, Any],
        seed: int,
        stream: int = 0,
        streams: int = 1,
        rows: str | Floats | None = None,
    ) -> None:
        events = workload.get("events", {})
        self._seed, self._stream, self._streams = seed, stream, streams
        self.attributes = attributes_of(workload)
        given = workload["attributes"]
        self._values = [
            ValueDraws(attribute, Distribution.from_plan(each.get("drawn")))
            for attribute, each in zip(self.attributes, given, strict=True)
        ]
        self._left_out = np.array([each.get("unspecified", 0.0) for each in given])
        self._rows: Floats | None = None
        self._quotes: Quotes | None = None
        wanted = events if events.get("source") == "stocks" else events.get("wanted")
        if wanted:
            self._quotes = quotes(wanted["stocks"], wanted["skew"], wanted["seed"])
        if events.get("source") == "stocks" and self._quotes is not None:
            self._rows = self._quotes.rows[stream::streams]
        elif events.get("source") == "rows":
            self._rows = unpacked(rows, len(given)) if isinstance(rows, str) else rows
        self._block: tuple[int, list[tuple[float, ...]]] = -1, []

    @classmethod
    def for_publisher(cls, spec: NodeSpec) -> Self:
        """Return the values of a publisher's first stream."""
        return cls(spec.workload, spec.seed, spec.published_by(spec)[0], len(spec.homes), spec.rows)

    def one(self, number: int) -> tuple[float, ...]:
        """Return the values of an event."""
        block, place = divmod(number, BLOCK_EVENTS)
        if self._block[0] != block:
            self._block = block, [tuple(row) for row in self._in_block(block).tolist()]
        return self._block[1][place]

    def many(self, first: int, count: int) -> Floats:
        """Return the values of `count` events from `first` on, a row each."""
        low, high = first // BLOCK_EVENTS, -(-(first + count) // BLOCK_EVENTS)
        blocks = [self._in_block(block) for block in range(low, high)]
        begin = first - low * BLOCK_EVENTS
        return np.concatenate([np.zeros((0, len(self._values))), *blocks])[begin : begin + count]

    def sample(self, count: int, generator: np.random.Generator) -> Floats:
        """Draw events from the stream's distribution, unordered and fully specified, as centres of
        subscriptions.
        """
        if self._quotes is not None:
            return self._quotes.sample(count, generator)
        drawn = np.stack([each.draw(count, generator) for each in self._values], axis=1)
        if self._rows is None:
            return drawn
        chosen = self._rows[generator.integers(len(self._rows), size=count)]
        return np.where(np.isnan(chosen), drawn, chosen)

    def _in_block(self, block: int) -> Floats:
        generator = np.random.default_rng((self._seed, self._stream, block))
        if self._rows is not None:
            numbers = np.arange(block * BLOCK_EVENTS, (block + 1) * BLOCK_EVENTS)
            found = self._rows[numbers % len(self._rows)]
        else:
            found = np.stack([each.draw(BLOCK_EVENTS, generator) for each in self._values], axis=1)
        if self._left_out.any():
            found[generator.random(found.shape) < self._left_out] = UNSPECIFIED
        return found


def packed(rows: Floats) -> str:
    """Encode rows of values as text, for a plan."""
    return base64.b64encode(zlib.compress(rows.astype("<f8").tobytes())).decode()


@lru_cache(maxsize=2)
def unpacked(text: str, attributes: int) -> Floats:
    """Decode packed rows. Raises ValueError if the text is malformed or does not have this number of
    attributes.
    """
    try:
        inflate = zlib.decompressobj()
        data = inflate.decompress(base64.b64decode(text, validate=True), ROWS_BYTES_MAX)
    except zlib.error as error:
        raise ValueError(f"rows of values cannot be unpacked: {error}") from None
    if not inflate.eof or not data or len(data) % (8 * attributes):
        raise ValueError("rows of values are incomplete")
    return np.frombuffer(data, "<f8").reshape(-1, attributes).astype(float)
