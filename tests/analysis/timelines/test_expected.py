"""Who is to get what, by hand: subscriptions by number and by time, faults that excuse, sizes."""

import resource
import time
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from analysis.errors import AnalysisError
from analysis.timelines import schemas
from analysis.timelines.deliveries import check
from analysis.timelines.run_metadata import Fault, Host, RunMetadata
from node.core.declaration import Contract, Declared
from node.core.deliveries import RecordKind as K

S = 1_000_000_000
SETTLE = 100_000_000
CONTRACT = Contract(
    published="sent", audience="topic", since="subscription", delivery="at-most-once", survives=(),
    settle_us=SETTLE // 1000,
)  # fmt: skip
DECLARED = Declared("toy", {"publisher": ("publisher",), "subscriber": ("subscriber",)}, CONTRACT)


def metadata(*, faults=(), contract=CONTRACT, clients=2, streams=2):
    hosts = {
        "p": Host("p", "r0", "publisher", "10.0.0.2"),
        **{f"c{n}": Host(f"c{n}", "r0", "subscriber", f"10.0.1.{n}") for n in range(clients)},
    }
    return RunMetadata(
        "run", "toy", 1, None, zero_ns=0, stopped_ns=1000 * S, drained_ns=1001 * S, ended_ns=1002 * S,
        outcome="completed", event_bytes=10, hosts=hosts, owner=dict.fromkeys(range(streams), "r0"),
        faults=faults, declared=replace(DECLARED, contract=contract),
    )  # fmt: skip


def rows(host, *given):
    """(kind, stream, first_seq, count, t_ns) each, in order of writing."""
    return [
        {
            "host": host, "session": 0, "position": position, "kind": int(kind), "stream": stream,
            "first_seq": seq, "count": count, "t_ns": t_ns, "batch_crc": 0, "running_crc": 0,
            "covered": count,
        }
        for position, (kind, stream, seq, count, t_ns) in enumerate(given)
    ]  # fmt: skip


PUBLISHED = rows("p", *((K.PUBLISHED, 0, 1 + n, 1, n * S) for n in range(100)))
"""One event a second: event n was published at n - 1 s."""


def counted(*got, about=None, client="c0"):
    published, records = (
        pa.Table.from_pylist(each, schema=schemas.RECORDS) for each in (PUBLISHED, rows(client, *got))
    )
    found = check(["c0", "c1"], published, records, about or metadata()).to_pylist()
    names = ("lost", "stray", "duplicated", "out_of_order")
    return {name: sum(row[name] for row in found) for name in names if any(row[name] for row in found)}


def events(first, last):
    return [(K.DELIVERED, 0, seq, 1, seq * S) for seq in range(first, last + 1)]


def by_number(first, after):
    return [(K.SUBSCRIBED, 0, first, 0, 0)], [(K.UNSUBSCRIBED, 0, after, 0, 60 * S)]


def test_who_does_not_subscribe_is_to_get_nothing():
    assert counted() == {}


def test_what_was_published_while_subscribed_is_expected_and_no_more():
    begin, end = by_number(11, 31)
    assert counted(*begin, *events(11, 30), *end) == {}
    assert counted(*begin, *events(11, 19), *events(21, 30), *end) == {"lost": 1}
    assert counted(*begin, *events(11, 33), *end) == {"stray": 3}
    assert counted(*begin, *events(9, 30), *end) == {"stray": 2}


def test_an_event_at_a_stranger_is_stray():
    assert counted(*events(50, 50)) == {"stray": 1}


def test_a_repetition_and_a_wrong_order_are_told_as_such():
    begin, end = by_number(1, 11)
    assert counted(*begin, *events(1, 10), *events(4, 4), *end) == {"duplicated": 1}
    swapped = [*events(1, 4), *events(6, 6), *events(5, 5), *events(7, 10)]
    assert counted(*begin, *swapped, *end) == {"out_of_order": 1}
    unordered = metadata(contract=replace(CONTRACT, order="none"))
    assert counted(*begin, *swapped, *end, about=unordered) == {}


def test_a_subscription_that_goes_on_brings_all_that_follows():
    assert counted((K.SUBSCRIBED, 0, 91, 0, 0), *events(91, 99)) == {"lost": 1}


def test_without_numbers_what_is_published_meanwhile_may_come_and_need_not():
    asked = (K.SUBSCRIBING, 0, 0, 0, int(9.5 * S)), (K.SUBSCRIBED, 0, 0, 0, int(11.5 * S))
    ended = (K.UNSUBSCRIBING, 0, 0, 0, int(29.5 * S)), (K.UNSUBSCRIBED, 0, 0, 0, int(31.5 * S))
    assert counted(*asked, *events(13, 30), *ended) == {}
    assert counted(*asked, *events(11, 32), *ended) == {}
    assert counted(*asked, *events(10, 33), *ended) == {"stray": 2}
    assert counted(*asked, *events(14, 29), *ended) == {"lost": 2}


def test_who_was_never_told_that_it_is_subscribed_may_get_all_and_must_get_nothing():
    asked = (K.SUBSCRIBING, 0, 0, 0, int(9.5 * S))
    assert counted(asked) == {}
    assert counted(asked, *events(11, 100)) == {}


def test_what_is_published_within_a_fault_that_is_excluded_need_not_come():
    restored = Fault("restart", "restart", "p", 30.0, 30 * S, processes=("p",))
    kill = Fault("kill", "kill", "p", 20.0, 20 * S, processes=("p",))
    begin, end = by_number(1, 101)
    got = [*events(1, 20), *events(32, 100)]
    assert counted(*begin, *got, *end, about=metadata(faults=(kill, restored))) == {}
    assert counted(*begin, *got, *end) == {"lost": 11}
    survives = metadata(faults=(kill, restored), contract=replace(CONTRACT, survives=("kill",)))
    assert counted(*begin, *got, *end, about=survives) == {"lost": 11}


def test_a_stream_that_nobody_planned_is_an_error():
    with pytest.raises(AnalysisError, match="c0 recorded events of stream 7"):
        counted((K.DELIVERED, 7, 1, 1, S))


CLIENTS, STREAMS, EACH = 100_000, 10_000, 4


@pytest.mark.slow
def test_a_hundred_thousand_clients_with_four_of_ten_thousand_topics_fit():
    rng = np.random.default_rng(1)
    client = np.repeat(np.arange(CLIENTS), EACH)
    stream = rng.integers(0, STREAMS, CLIENTS * EACH)
    names = np.array([f"c{n}" for n in range(CLIENTS)])

    def table(host, kind, stream, first_seq, count):
        size = len(stream)
        columns = {
            "host": host, "session": 0, "position": np.arange(size), "kind": int(kind), "stream": stream,
            "first_seq": first_seq, "count": count, "t_ns": S, "batch_crc": 0, "running_crc": 0,
            "covered": count,
        }  # fmt: skip
        arrays = [
            pa.array(np.broadcast_to(columns[field.name], size).copy()).cast(field.type)
            for field in schemas.RECORDS
        ]
        return pa.Table.from_arrays(arrays, schema=schemas.RECORDS)

    published = table("p", K.PUBLISHED, np.arange(STREAMS), 1, 100)
    asked = table(names[client], K.SUBSCRIBED, stream, 11, 0)
    got = table(names[client], K.DELIVERED, stream, 11, 89)
    began = time.process_time()
    found = check(
        [*names], published, pa.concat_tables([asked, got]), metadata(clients=CLIENTS, streams=STREAMS)
    )
    pairs = len(np.unique(client * STREAMS + stream))
    assert found.num_rows == pairs
    assert sum(found.column("lost").to_pylist()) == pairs
    assert sum(found.column("stray").to_pylist()) == 0
    assert time.process_time() - began < 120
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 2 << 20
