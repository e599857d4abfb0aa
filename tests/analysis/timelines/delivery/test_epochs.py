"""Epochs of a stream are laid out one after another, reversibly; throughput counts all of them."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from analysis.timelines import schemas
from analysis.timelines.delivery.epochs import epoch_layout
from analysis.timelines.throughput import arrivals
from node.core.epochs import epoch_of, first_seq_of_epoch, number_of
from tests.analysis.timelines.world import ZERO, S, facts_of

rows = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.builds(
            lambda epoch, number: first_seq_of_epoch(epoch) - 1 + number,
            st.integers(0, 5),
            st.integers(0, 50),
        ),
        st.integers(0, 9),
    ),
    min_size=1,
)


def table_of(given):
    names = ("stream", "first_seq", "count")
    return pa.table({name: [row[at] for row in given] for at, name in enumerate(names)})


@given(rows)
def test_the_layout_keeps_order_and_adjacency_and_is_invertible(given):
    table = table_of(given)
    found = epoch_layout([table])
    laid = found.laid_out(table).column("first_seq").to_numpy()
    for stream in {row[0] for row in given}:
        mine = [at for at, row in enumerate(given) if row[0] == stream]
        seqs, numbers = np.array([given[at][1] for at in mine]), laid[mine]
        assert (found.original(stream, numbers) == seqs).all()
        order = np.argsort(seqs, kind="stable")
        assert (np.diff(numbers[order]) >= 0).all()
        for at, seq in zip(mine, seqs, strict=True):
            for other in mine:
                apart = given[other][1] - seq
                if epoch_of(given[other][1]) == epoch_of(seq):
                    assert laid[other] - laid[at] == apart
                elif apart > 0:
                    assert laid[other] > laid[at] + given[at][2], "they do not touch"


def test_a_run_with_one_epoch_is_unchanged():
    table = table_of([(0, 1, 10), (1, 5, 3)])
    assert epoch_layout([table]).laid_out(table) is table


def test_throughput_counts_the_events_of_every_epoch_once():
    seqs = [1, 6, first_seq_of_epoch(2), first_seq_of_epoch(2) + 3, first_seq_of_epoch(2)]
    events = [
        {
            "kind": "arrived", "host": "r1-client-0", "region": "r1", "role": "client", "peer": "r1-proxy-0",
            "stream": 0, "first_seq": seq, "count": 5, "events": 5, "t_ns": ZERO + S // 20, "bytes": 50,
        }
        for seq in seqs
    ]  # fmt: skip
    found = arrivals(pa.Table.from_pylist(events, schema=schemas.EVENTS), facts_of()).to_pylist()
    assert sum(row["events"] for row in found) == 10 + 8
    assert number_of(seqs[-1]) == 1
