"""Counts wrong deliveries to clients: repeated, late, to a client that may not get them, or after their
tombstone.
"""

from dataclasses import dataclass

import numpy as np

from analysis.arrays import Ints
from analysis.timelines.delivery.delivery_records import RecordedDeliveries, RecordedPublications
from analysis.timelines.delivery.expected import Expected
from analysis.timelines.delivery.sequence_intervals import (
    Batches,
    check_groups,
    in_group_spans,
    late_numbers,
    repeats,
    within,
)
from analysis.timelines.run_metadata import RunMetadata
from analysis.timelines.verification import VerificationCounts

MAY_REPEAT = ("at-least-once", "best-effort")
"""Delivery contracts that permit repeated events."""


@dataclass(frozen=True, slots=True)
class WrongDeliveries:
    """Wrong events of each record, by the names of their columns: repeated, late, not permitted at the
    client, or after their tombstone.
    """

    duplicated: Ints
    out_of_order: Ints
    stray: Ints
    resurrected: Ints


def wrong_deliveries(
    batches: Batches,
    got: RecordedDeliveries,
    known: RecordedPublications,
    metadata: RunMetadata,
    *,
    again: Ints,
    verdict: VerificationCounts,
    wanted: Expected,
) -> WrongDeliveries:
    """Return the wrong events of each record.

    batches: the numbers that each record covers. again: how many of them arrived before. verdict: how many of
    its events no publisher published. wanted: what each session must and may get.

    Unpublished events are stray if publishers number events, since nothing else gives an event its number.
    Otherwise they count as duplicates of other events; if duplicates are allowed, an event that equals no
    other one is stray.
    """
    contract, is_event = metadata.declared.contract, got.events > 0
    again_events = _repeats_of_events(batches, got, again)
    duplicated = np.where(is_event, np.minimum(again_events, got.events), 0)
    stray = np.where(is_event, np.minimum(_outside(batches, wanted.may), got.events), 0)
    late = np.zeros_like(again)
    if contract.published != "acknowledged":
        invented = verdict.unpublished
    else:
        invented = verdict.invented if contract.delivery in MAY_REPEAT else np.zeros_like(again)
        duplicated = duplicated + verdict.unpublished - invented
    stray = np.maximum(stray, invented)
    if contract.order != "none":
        late = _late(_in_order(batches, got, known, metadata), again, invented)
    resurrected = np.where(is_event, np.minimum(again - again_events, got.events), 0)
    return WrongDeliveries(duplicated, late, stray, resurrected)


def _repeats_of_events(batches: Batches, got: RecordedDeliveries, again: Ints) -> Ints:
    """Return, for each batch, how many of its numbers arrived as events before; SPARSE counts as if all
    had.
    """
    some = np.flatnonzero(got.events > 0)
    if len(some) == len(again):
        return again
    found = np.zeros_like(again)
    found[some] = repeats(batches.take(some))
    return found


def _outside(batches: Batches, may: tuple[Ints, Ints] | None) -> Ints:
    """Return how many numbers of each batch the session may not get."""
    if may is None:
        return np.zeros(len(batches.count), np.int64)
    return batches.count - within(may, batches.first_seq, batches.end_seq)


def _late(ordered: Batches, again: Ints, invented: Ints) -> Ints:
    """Return how many numbers of each batch arrived after a later published one. again: repetitions."""
    late = np.zeros_like(again)
    real = np.flatnonzero(invented < ordered.count)
    late[real] = late_numbers(ordered.take(real)) - again[real]
    return late


def _in_order(
    batches: Batches, got: RecordedDeliveries, known: RecordedPublications, metadata: RunMetadata
) -> Batches:
    """Return the batches in spans of the contract's unit of order: a session, or each publisher within it."""
    if metadata.declared.contract.order != "publisher" or not len(known.driver):
        return batches
    at = in_group_spans(got.stream, got.first, got.reach).first_seq
    place = np.maximum(np.searchsorted(known.batches.first_seq, at, side="right") - 1, 0)
    publishers = int(known.driver.max()) + 1
    check_groups((int(got.session.max(initial=0)) + 1) * publishers)
    return in_group_spans(got.session * publishers + known.driver[place], got.first, got.reach)
