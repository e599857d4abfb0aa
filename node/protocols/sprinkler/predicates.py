"""The predicates of garbage collection events (paper 2.1, 3.4): what they collect, and which are refused.

BEFORE, LAST and OLDER_THAN collect a prefix of the stream; times never decrease along it. SAME_KEY collects
data events and SAME_KEY events that begin with the same bytes. Collection is final: a predicate that matches
an earlier garbage collection event must match everything that this one matched (2.1). This always holds for
prefixes. It holds for keys if all keys of a stream have one length and events with predicates on age have no
key; so an event with another key length is refused.
"""

from node.core.epochs import number_of
from node.protocols.sprinkler.messages import EventKind, Predicate, Publish, event_sizes
from node.protocols.sprinkler.storage.batches import Batch

KEY_BYTES_MAX = 255


def prefix_end(batch: Batch, seq: int) -> int:
    """Return the last sequence number that BEFORE or LAST of the batch's event `seq` collects."""
    if batch.predicate == Predicate.LAST:
        # counted in its own epoch: a proxy may not know how many events the former ones had
        return seq - batch.argument - 1 if number_of(seq) > batch.argument else 0
    return min(batch.argument, seq) - 1  # no event can match a future one


def collects_by_key(batch: Batch) -> bool:
    """Return whether the events of the batch are SAME_KEY events."""
    return batch.kind == EventKind.GC and batch.predicate == Predicate.SAME_KEY


def has_keys(batch: Batch) -> bool:
    """Return whether SAME_KEY events can match the events of the batch."""
    return batch.kind == EventKind.DATA or collects_by_key(batch)


def refusal(publish: Publish, key_bytes: int | None) -> str | None:
    """Return why this may not be published on a stream with keys of `key_bytes`, or None.

    key_bytes: None if the stream has no keys yet.
    """
    if publish.kind != EventKind.GC or publish.predicate != Predicate.SAME_KEY:
        return None
    wanted = publish.argument
    if not 0 < wanted <= KEY_BYTES_MAX:
        return f"a key of {wanted} bytes: it must have 1 to {KEY_BYTES_MAX}"
    if key_bytes is not None and wanted != key_bytes:
        return (
            f"a key of {wanted} bytes but the stream's keys have {key_bytes}: it would undo their collection"
        )
    shortest = publish.event_bytes or min(event_sizes(publish.count, publish.payload))
    if shortest < wanted:
        return f"an event of {shortest} bytes has no key of {wanted} bytes"
    return None
