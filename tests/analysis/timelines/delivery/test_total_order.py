"""Total order, compared with a search through all orders; the deviating client is reported."""

from itertools import combinations, permutations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.timelines import schemas
from analysis.timelines.delivery.total_order import disorder, with_disorder
from analysis.timelines.recovering.run_faults import RunFault
from analysis.timelines.run_metadata import Host, RunMetadata
from node.core.deliveries import RecordKind
from tests.analysis.timelines.record_rows import record, records_table

S = 1_000_000_000
STREAMS = 6


def metadata(faults=()):
    hosts = {f"c{n}": Host(f"c{n}", "r0", "subscriber", f"10.0.1.{n}") for n in range(9)}
    return RunMetadata(
        "run", "toy", 1, None, zero_ns=0, stopped_ns=None, drained_ns=None, ended_ns=None,
        outcome="completed", event_bytes=10, hosts=hosts,
        owner=dict.fromkeys(range(STREAMS), "r0"), faults=faults,
    )  # fmt: skip


def records(*sequences):
    """Return each client's deliveries, as (stream, number) or (stream, first, count), one event per
    second.
    """
    return records_table(
        record(f"c{client}", RecordKind.DELIVERED, stream, first, (*count, 1)[0], place * S, position=place)
        for client, sequence in enumerate(sequences)
        for place, (stream, first, *count) in enumerate(sequence)
    )


def late(*sequences, about=None):
    found = disorder(records(*sequences), about or metadata()).to_pylist()
    return [(row["client"], row["stream"], row["events"]) for row in found]


def first_ones(sequence):
    """Return the sequence without repeated and late events, which other figures count."""
    highest, kept = {}, []
    for stream, number in sequence:
        if number > highest.get(stream, 0):
            highest[stream] = number
            kept.append((stream, number))
    return kept


def fits(order, sequence):
    return [event for event in order if event in sequence] == sequence


def one_order_fits(sequences):
    """Return whether one order fits all sequences, by trying all orders."""
    kept = [first_ones(each) for each in sequences]
    events = sorted({event for each in kept for event in each})
    return any(all(fits(order, each) for each in kept) for order in permutations(events))


def two_disagree(sequences):
    """Return whether two clients disagree, by comparing all pairs of events."""
    kept = [first_ones(each) for each in sequences]
    return any(
        (a.index(x) < a.index(y)) != (b.index(x) < b.index(y))
        for a, b in combinations(kept, 2)
        for x, y in combinations([event for event in a if event in b], 2)
    )


EVENTS = st.tuples(st.integers(0, 2), st.integers(1, 2))


@given(st.lists(st.lists(EVENTS, max_size=7), min_size=1, max_size=4))
def test_events_are_out_of_order_exactly_if_no_order_fits_all_clients(sequences):
    assert bool(late(*sequences)) == (not one_order_fits(sequences))


@given(st.lists(st.permutations([(n, 1) for n in range(5)]), min_size=1, max_size=5))
def test_total_order_is_violated_if_two_clients_disagree(sequences):
    assert bool(late(*sequences)) == two_disagree(sequences)


ALL = [(0, 1), (1, 1), (2, 1), (0, 2), (1, 2), (2, 2)]


def test_only_the_client_that_differs_is_reported():
    swapped = [*ALL[:1], ALL[2], ALL[1], *ALL[3:]]
    assert late(ALL, ALL, swapped, ALL) == [("c2", 1, 1)]
    moved = [ALL[5], *ALL[:5]]
    assert late(ALL, moved, ALL) == [("c1", stream, 1) for stream in (0, 1, 0, 1)]


def test_different_batches_are_compared_event_by_event():
    assert late([(0, 1, 10), (1, 1)], [(0, 1, 4), (0, 5, 6), (1, 1)]) == []
    assert late(*[[(0, 1, 10), (1, 1)]] * 2, [(0, 1, 4), (1, 1), (0, 5, 6)]) == [("c2", 0, 6)]


def test_disorder_within_a_stream_is_left_to_the_number_comparison():
    assert late([(0, 1), (0, 2), (1, 1)], [(0, 2), (0, 1), (1, 1)]) == []


def test_late_events_are_listed_with_client_and_preceding_fault():
    cut = RunFault("cut", "cut", "r0-r1", 0.5, S // 2)
    found = disorder(records(ALL, ALL, [ALL[1], ALL[0], *ALL[2:]]), metadata((cut,)))
    nothing = dict.fromkeys(schemas.DELIVERIES.names, 0) | {
        "duplicated_after": [0],
        "out_of_order_after": [0],
    }
    rows = [nothing | {"client": f"c{n}", "stream": stream} for n in (2, 0) for stream in (1, 0)]
    table = with_disorder(pa.Table.from_pylist(rows, schema=schemas.DELIVERIES), found)
    changed = [row for row in table.to_pylist() if row["out_of_order"]]
    assert [(row["client"], row["stream"]) for row in changed] == [("c2", 0)]
    assert (changed[0]["out_of_order"], changed[0]["out_of_order_after"]) == (1, [1])
    assert table.schema == schemas.DELIVERIES


@pytest.mark.slow
def test_a_million_deliveries_are_checked_without_comparing_pairs():
    """The run has 2,000 clients that follow some of six streams; one has two events in the other order."""
    events = 3_000
    rng = np.random.default_rng(5)
    stream, number = np.arange(events) % STREAMS, np.arange(events) // STREAMS + 1
    chosen = [np.flatnonzero(np.isin(stream, rng.choice(STREAMS, 1))) for _ in range(1_998)]
    everything = np.arange(events)
    swapped = everything.copy()
    swapped[[1_000, 1_001]] = 1_001, 1_000
    rows = [everything, everything, swapped, *chosen]
    row = np.concatenate(rows)
    columns = record("", RecordKind.DELIVERED, count=1) | {
        "host": np.repeat([f"c{n}" for n in range(len(rows))], [len(each) for each in rows]),
        "position": np.arange(len(row)), "stream": stream[row], "first_seq": number[row],
    }  # fmt: skip
    arrays = [np.broadcast_to(columns[field.name], len(row)).copy() for field in schemas.RECORDS]
    kinds = [pa.array(each).cast(field.type) for each, field in zip(arrays, schemas.RECORDS, strict=True)]
    table = pa.Table.from_arrays(kinds, schema=schemas.RECORDS)
    found = disorder(table, metadata()).to_pylist()
    assert [(each["client"], each["events"]) for each in found] == [("c2", 1)]
