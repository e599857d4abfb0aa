"""Pieces as pairs of clients and pieces say the same as the table of all clients by all pieces."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from analysis.timelines import schemas
from analysis.timelines.delivery import sequence_intervals, sparse_intervals
from analysis.timelines.delivery.sequence_intervals import NEVER, Batches, union
from analysis.timelines.delivery.stream_groups import records_pieces, with_wanted
from analysis.timelines.run_window import RunWindow
from node.core.deliveries import RecordKind

CLIENTS = ("c0", "c1", "c2", "c3")
WINDOW = RunWindow(10, 90)
NUMBERS, TIMES = st.integers(1, 12), st.integers(5, 95)  # some are dated outside of the run
batch = st.tuples(NUMBERS, st.integers(1, 4), TIMES)


def records(host, kind, batches):
    return [
        dict.fromkeys(schemas.RECORDS.names, 0)
        | {"host": host, "kind": int(kind), "first_seq": first, "count": count, "covered": count, "t_ns": t}
        for first, count, t in batches
    ]


def table(rows):
    return pa.Table.from_pylist(rows, schema=schemas.RECORDS)


def runs(batches):
    columns = [np.array(column, np.int64) for column in zip(*batches, strict=True)] or [np.zeros(0, int)] * 3
    return union(Batches(*columns))


@given(
    st.lists(batch, max_size=6),
    st.lists(batch, max_size=3),
    st.lists(st.lists(batch, max_size=4), min_size=4, max_size=4),
    st.lists(st.lists(batch, min_size=1, max_size=3), max_size=4),
    st.lists(st.lists(batch, min_size=1, max_size=3), max_size=4),
    st.integers(1, 60),
)
def test_sparse_and_dense_intervals_agree_per_client_and_piece(published, taken, got, must, due, cells):
    tables = [
        table(records("p", RecordKind.PUBLISHED, published)),
        table(records("s", RecordKind.PUBLISHED, taken)),
        table(
            [row for n, mine in enumerate(got) for row in records(CLIENTS[n], RecordKind.DELIVERED, mine)]
            + records("somebody-else", RecordKind.DELIVERED, [(1, 4, 50)])
        ),
    ]
    sets = tuple({CLIENTS[n]: runs(mine) for n, mine in enumerate(each)} for each in (must, due))
    dense = with_wanted(records_pieces(tables[0], tables[1], tables[2], CLIENTS), sets)
    dense = sequence_intervals.without_misdated(dense, WINDOW)
    sparse = sparse_intervals.without_misdated_pairs(
        sparse_intervals.from_records(*tables, CLIENTS, sets), WINDOW
    )

    def told(of_it, times):
        """By number, so that it does not matter where pieces end."""
        return {
            seq + n: time
            for seq, count, time in zip(
                of_it.first_seq.tolist(), of_it.count.tolist(), times.tolist(), strict=True
            )
            for n in range(count)
        }

    for hosts in ([0, 1, 2, 3], [1], [0, 3]):
        known = dense.published_ns != NEVER
        last = told(dense, np.where(known, dense.last_ns(hosts), -1))
        known = sparse.published_ns != NEVER
        same = told(sparse, np.where(known, sparse.last_ns(hosts), -1))
        assert {seq: t for seq, t in same.items() if t != -1} == {s: t for s, t in last.items() if t != -1}
    blocks = list(sparse.blocks(cells))
    assert [host for block in blocks for host in block.hosts] == list(CLIENTS)
    assert all(block.arrived_ns.size <= max(cells, len(sparse.count)) for block in blocks)
    for block in blocks:
        for host in block.hosts:
            published_ns = told(dense, dense.published_ns)
            for number, t_ns in told(block, block.published_ns).items():
                assert published_ns.get(number, NEVER) == t_ns
            came, some = (told(each, each.at(host)) for each in (dense, block))
            assert {n: t for n, t in some.items() if t != NEVER} == {
                n: t for n, t in came.items() if t != NEVER
            }
            wanted, some = (
                told(each, each.wanted_at(host) & (each.published_ns != NEVER)) for each in (dense, block)
            )
            assert {n for n, is_so in some.items() if is_so} == {n for n, is_so in wanted.items() if is_so}
