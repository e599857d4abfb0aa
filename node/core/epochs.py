"""Sequence numbers with their epoch, as in ZooKeeper's transaction ids: the upper bits are the epoch of the
stream, the lower ones the event's number in it.

A stream begins in epoch 0. Its owner begins a new one when it may have lost events that others still have,
and cannot know their numbers: so no number ever has two contents. Greater epochs come later, so sequence
numbers are compared as they are; within an epoch they are consecutive, from number 1 on. Epochs may be left
out. An epoch that reached 2^40 events would go on in the numbers of the next one, after five days of 2.6
million events a second; numbers stay apart even then.
"""

NUMBER_BITS = 40
EPOCH_MAX = (1 << 22) - 1
SEQ_MAX = (EPOCH_MAX + 1 << NUMBER_BITS) - 1  # all fit into 63 bits


def epoch_of(seq: int) -> int:
    """The epoch of a sequence number."""
    return seq >> NUMBER_BITS


def number_of(seq: int) -> int:
    """The number of an event in its epoch, from 1 on."""
    return seq & ((1 << NUMBER_BITS) - 1)


def first_of(epoch: int) -> int:
    """The sequence number of an epoch's first event; the one before stands for everything that was before."""
    return (epoch << NUMBER_BITS) + 1


def parsed(text: str) -> int:
    """The inverse of `written`; raises ValueError."""
    epoch, colon, number = text.rpartition(":")
    return (int(epoch) << NUMBER_BITS) + int(number) if colon else int(text)


def written(seq: int) -> str:
    """As people read it: 17, or 3:17 for event 17 of epoch 3."""
    epoch = epoch_of(seq)
    return f"{epoch}:{number_of(seq)}" if epoch else str(seq)
