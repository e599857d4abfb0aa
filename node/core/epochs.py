"""Sequence numbers with an epoch, as in ZooKeeper's transaction ids: the upper bits are the epoch of the
stream, the lower ones the event's number in the epoch.

A stream begins in epoch 0. Its owner begins a new epoch when it may have lost events that others still have
and whose numbers it cannot know, so no number ever has two contents. Later epochs are greater, so sequence
numbers are compared as they are; within an epoch they are consecutive, from number 1 on. Epochs may be
skipped. After 2^40 events an epoch would run into the numbers of the next one; that takes five days at 2.6
million events a second, and numbers stay distinct even then.
"""

NUMBER_BITS = 40
EPOCH_MAX = (1 << 22) - 1
SEQ_MAX = (EPOCH_MAX + 1 << NUMBER_BITS) - 1  # all fit into 63 bits


def epoch_of(seq: int) -> int:
    """Return the epoch of a sequence number."""
    return seq >> NUMBER_BITS


def number_of(seq: int) -> int:
    """Return the number of an event in its epoch, from 1 on."""
    return seq & ((1 << NUMBER_BITS) - 1)


def first_seq_of_epoch(epoch: int) -> int:
    """Return the sequence number of an epoch's first event; its predecessor represents all earlier events."""
    return (epoch << NUMBER_BITS) + 1


def parse_seq(text: str) -> int:
    """Parse the result of `format_seq`. Raises ValueError."""
    epoch, colon, number = text.rpartition(":")
    return (int(epoch) << NUMBER_BITS) + int(number) if colon else int(text)


def format_seq(seq: int) -> str:
    """Format a sequence number for users: 17, or 3:17 for event 17 of epoch 3."""
    epoch = epoch_of(seq)
    return f"{epoch}:{number_of(seq)}" if epoch else str(seq)
