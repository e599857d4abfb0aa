"""Pieces give the same times as an event-by-event computation."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from analysis.arrays import NEVER
from analysis.timelines.delivery.sequence_intervals import Batches, union
from analysis.timelines.delivery.stream_pieces import from_records, without_misdated
from analysis.timelines.run_window import RunWindow
from node.core.deliveries import RecordKind
from tests.analysis.timelines.delivery.test_sequence_intervals import earliest
from tests.analysis.timelines.record_rows import record, records_table

CLIENTS = ("c0", "c1", "c2", "c3")
WINDOW = RunWindow(10, 90)
NUMBERS, TIMES = st.integers(1, 12), st.integers(5, 95)  # some are dated outside of the run
batch = st.tuples(NUMBERS, st.integers(1, 4), TIMES)
OF_CLIENTS = st.lists(st.lists(batch, max_size=4), min_size=4, max_size=4)


def records(host, kind, batches):
    return [record(host, kind, 0, first, count, t) for first, count, t in batches]


def runs(batches):
    return union(Batches(*np.array(batches, np.int64).reshape(-1, 3).T))


def within(t_ns):
    return WINDOW.first_ns <= t_ns < WINDOW.end_ns


def dated(seq, published, heads, came):
    """Return when a number was published; NEVER if it was not, or if a time of it is outside of the run."""
    times = [source[seq] for source in (heads, *came) if seq in source]
    t_ns = min([published[seq], *times]) if seq in published else NEVER
    return t_ns if within(t_ns) and all(within(each[seq]) for each in came if seq in each) else NEVER


@given(
    st.lists(batch, max_size=6), st.lists(batch, max_size=3), OF_CLIENTS,
    st.none() | st.tuples(OF_CLIENTS, OF_CLIENTS), st.integers(1, 60),
)  # fmt: skip
def test_pieces_have_the_times_of_their_events_and_blocks_those_of_their_clients(
    published, taken, got, wanted, cells
):
    tables = [
        records_table(records("p", RecordKind.PUBLISHED, published)),
        records_table(records("s", RecordKind.PUBLISHED, taken)),
        records_table(
            [row for n, mine in enumerate(got) for row in records(CLIENTS[n], RecordKind.DELIVERED, mine)]
            + records("another", RecordKind.DELIVERED, [(1, 4, 50)])
        ),
    ]
    sets = wanted and tuple(
        {CLIENTS[n]: runs(mine) for n, mine in enumerate(each) if mine} for each in wanted
    )
    pieces = without_misdated(from_records(*tables, CLIENTS, sets), WINDOW)
    heads, of_driver, *came = map(earliest, (taken, published, *got))
    starts = pieces.first_seq.tolist()
    places = {
        seq: place
        for place, (first, count) in enumerate(zip(starts, pieces.count.tolist(), strict=True))
        for seq in range(first, first + count)
    }
    assert places.keys() == set().union(heads, of_driver, *came)
    published_ns = {seq: dated(seq, of_driver, heads, came) for seq in places}
    assert {seq: int(pieces.published_ns[place]) for seq, place in places.items()} == published_ns
    must, due = (
        [{seq for seq in starts if sets is None or seq in earliest(mine)} for mine in each]
        for each in wanted or (got, got)
    )
    came = [{seq: t_ns for seq, t_ns in each.items() if within(t_ns)} for each in came]
    for hosts in ([0, 1, 2, 3], [1], [0, 3]):
        expected = [
            max((came[host].get(seq, NEVER) for host in hosts if seq in must[host]), default=-1)
            for seq in starts
        ]
        assert pieces.last_ns(hosts).tolist() == expected
    assert pieces.came.tolist() == [any(seq in each for each in came) for seq in starts]
    blocks = list(pieces.blocks(cells))
    assert [host for block in blocks for host in block.hosts] == list(CLIENTS)
    assert len(blocks) == 1 or all(block.arrived_ns.size <= max(cells, len(starts)) for block in blocks)
    for block in blocks:
        numbers = block.first_seq.tolist()
        assert block.published_ns.tolist() == [published_ns[seq] for seq in numbers]
        assert (block.wanted is None) == (block.due is None) == (sets is None)
        for row, host in enumerate(map(CLIENTS.index, block.hosts)):
            assert block.arrived_ns[row].tolist() == [came[host].get(seq, NEVER) for seq in numbers]
            assert {*starts}.intersection(came[host]) <= {*numbers}
            for shown, of_client in ((block.wanted, must), (block.due, due)):
                if shown is not None:
                    assert {*block.first_seq[shown[row]].tolist()} == of_client[host]
