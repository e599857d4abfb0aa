"""The cost of collection in Hist (paper 3.4): processor time and memory of a proxy's part of it."""

import random
import time
from pathlib import Path

from node.protocols.sprinkler.messages import EventKind, Events, Predicate
from node.protocols.sprinkler.storage.history import EventHistory
from node.protocols.sprinkler.storage.key_popularity import KeyDraws
from tests.bench.rows import Row, row
from tests.testbed.sandboxed import sandboxed

BATCH_EVENTS = 6500  # as many of 10 bytes as fit in a batch
EVENT_BYTES = 10


def resident_mb() -> float:
    """Memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


def collected(events: int, predicate: Predicate, argument: int, distribution: str = "") -> dict[str, float]:
    """Store and collect this many events, in a separate process."""
    keys = KeyDraws(distribution, 1.1, 100_000, 0.0, random.Random(1)) if distribution else None
    history, before_mb = EventHistory([0], 1 << 40), resident_mb()
    stream, spent_s, longest_s = history.streams[0], 0.0, 0.0
    while stream.cnt < events:
        payload = bytearray(BATCH_EVENTS * EVENT_BYTES)
        if keys:
            payload = bytearray(b"".join(key + b".." for key in keys.draw_bytes(BATCH_EVENTS)))
        batch = Events(
            EventKind.GC, predicate, 0, stream.cnt + 1, BATCH_EVENTS, EVENT_BYTES, argument, 0, bytes(payload)
        )
        started_s = time.process_time()
        history.append(batch)
        history.commit(0, stream.cnt)
        history.collect_some()
        took_s = time.process_time() - started_s
        spent_s, longest_s = spent_s + took_s, max(longest_s, took_s)
    return {
        "spent": spent_s,
        "longest": longest_s * 1000,
        "memory": resident_mb() - before_mb,
        "saved": 100 * (1 - stream.live / events),
    }


def measure() -> list[Row]:
    """Rows for `make bench`."""
    keyed = sandboxed(collected, 10**7, Predicate.SAME_KEY, 8, "zipf")
    last = sandboxed(collected, 10**8, Predicate.LAST, 10**6)
    name = "10^7 events with 100,000 keys, skew 1.1"
    return [
        row(f"{name}: collection", keyed["spent"], "s", 30.0),
        row(f"{name}: longest step", keyed["longest"], "ms"),
        row(f"{name}: saved", keyed["saved"], "%"),
        row("10^8 events, last 10^6 stay: memory", last["memory"], "MB", 200.0),
        row("10^8 events, last 10^6 stay: collection", last["spent"], "s"),
    ]
