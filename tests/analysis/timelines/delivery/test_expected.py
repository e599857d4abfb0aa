"""Expected deliveries on hand-written records: subscriptions by number and by time, and excusing faults."""

from dataclasses import replace

import pytest

from analysis.errors import AnalysisError
from analysis.timelines import schemas
from analysis.timelines.delivery.deliveries import delivery_table
from analysis.timelines.delivery.expected import followed_spans
from analysis.timelines.recovering.run_faults import RunFault
from analysis.timelines.run_metadata import Host, RunMetadata
from node.core.declaration import Contract, Declared
from node.core.deliveries import RecordKind as K
from tests.analysis.timelines.record_rows import record, records_table

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
    return [record(host, *each, position=position) for position, each in enumerate(given)]


PUBLISHED = rows("p", *((K.PUBLISHED, 0, 1 + n, 1, n * S) for n in range(100)))
"""One event a second: event n was published at n - 1 s."""


def counted(*got, about=None, client="c0", published=PUBLISHED):
    tables = records_table(published), records_table(rows(client, *got))
    found = delivery_table(["c0", "c1"], *tables, about or metadata()).to_pylist()
    names = ("lost", "unacknowledged", "stray", "duplicated", "out_of_order")
    return {name: sum(row[name] for row in found) for name in names if any(row[name] for row in found)}


def events(first, last):
    return [(K.DELIVERED, 0, seq, 1, seq * S) for seq in range(first, last + 1)]


def by_number(first, after):
    return [(K.SUBSCRIBED, 0, first, 0, 0)], [(K.UNSUBSCRIBED, 0, after, 0, 60 * S)]


def test_exactly_the_events_published_while_subscribed_are_expected():
    begin, end = by_number(11, 31)
    assert counted(*begin, *events(11, 30), *end) == {}
    assert counted(*begin, *events(11, 19), *events(21, 30), *end) == {"lost": 1}
    assert counted(*begin, *events(11, 33), *end) == {"stray": 3}
    assert counted(*begin, *events(9, 30), *end) == {"stray": 2}


def test_an_event_at_a_client_without_subscription_is_stray():
    assert counted(*events(50, 50)) == {"stray": 1}


def test_a_repetition_and_a_wrong_order_are_reported_as_such():
    begin, end = by_number(1, 11)
    assert counted(*begin, *events(1, 10), *events(4, 4), *end) == {"duplicated": 1}
    swapped = [*events(1, 4), *events(6, 6), *events(5, 5), *events(7, 10)]
    assert counted(*begin, *swapped, *end) == {"out_of_order": 1}
    unordered = metadata(contract=replace(CONTRACT, order="none"))
    assert counted(*begin, *swapped, *end, about=unordered) == {}


def test_a_lasting_subscription_requires_all_later_events():
    assert counted((K.SUBSCRIBED, 0, 91, 0, 0), *events(91, 99)) == {"lost": 1}


def test_without_numbers_events_published_meanwhile_are_optional():
    asked = (K.SUBSCRIBING, 0, 0, 0, int(9.5 * S)), (K.SUBSCRIBED, 0, 0, 0, int(11.5 * S))
    ended = (K.UNSUBSCRIBING, 0, 0, 0, int(29.5 * S)), (K.UNSUBSCRIBED, 0, 0, 0, int(31.5 * S))
    assert counted(*asked, *events(13, 30), *ended) == {}
    assert counted(*asked, *events(11, 32), *ended) == {}
    assert counted(*asked, *events(10, 33), *ended) == {"stray": 2}
    assert counted(*asked, *events(14, 29), *ended) == {"lost": 2}


@pytest.mark.parametrize(("order", "lost"), [("stream", {"lost": 2}), ("none", {"lost": 1})])
def test_without_promised_order_late_events_of_an_ended_process_generation_are_no_loss(order, lost):
    contract = replace(CONTRACT, order=order, settle_us=5_000_000)
    about = replace(metadata(contract=contract), starts={"c0": 2})
    asked = (K.SUBSCRIBING, 0, 0, 0, 0), (K.SUBSCRIBED, 0, 1, 0, 0)
    assert counted(*asked, *events(1, 9), *events(11, 17), *events(19, 20), about=about) == lost


def test_a_late_confirmed_start_of_a_subscription_counts_from_there():
    asked = (K.SUBSCRIBING, 0, 0, 0, int(49.5 * S)), (K.SUBSCRIBED, 0, 0, 0, int(51.5 * S))
    known = (K.SUBSCRIBED, 0, 21, 0, int(55.5 * S))
    assert counted(*asked, known, *events(21, 100)) == {}
    assert counted(*asked, known, *events(22, 100)) == {"lost": 1}
    assert counted(*asked, known, *events(20, 100)) == {"stray": 1}
    assert counted(*asked, *events(55, 100)) == {"lost": 2}


def test_a_repeated_confirmation_counts_once():
    again = (K.SUBSCRIBED, 0, 9, 0, 5 * S)
    asked = rows("c0", (K.SUBSCRIBING, 0, 0, 0, S), (K.SUBSCRIBED, 0, 0, 0, 2 * S), again)
    [span] = followed_spans(records_table(asked), metadata()).to_pylist()
    assert (span["first_bin"], span["clients"]) == (2 * S // schemas.BIN_NS, 1)


def test_events_for_an_unconfirmed_subscriber_are_optional():
    asked = (K.SUBSCRIBING, 0, 0, 0, int(9.5 * S))
    assert counted(asked) == {}
    assert counted(asked, *events(11, 100)) == {}


def test_events_published_in_an_excluded_fault_may_be_lost():
    restored = RunFault("restart", "restart", "p", 30.0, 30 * S, processes=("p",))
    kill = RunFault("kill", "kill", "p", 20.0, 20 * S, processes=("p",))
    begin, end = by_number(1, 101)
    got = [*events(1, 20), *events(32, 100)]
    assert counted(*begin, *got, *end, about=metadata(faults=(kill, restored))) == {}
    assert counted(*begin, *got, *end) == {"lost": 11}
    survives = metadata(faults=(kill, restored), contract=replace(CONTRACT, survives=("kill",)))
    assert counted(*begin, *got, *end, about=survives) == {"lost": 11}


TOLD = replace(CONTRACT, published="sent-then-acknowledged")
ALL_BUT_TEN = (K.ACKNOWLEDGED, 0, 1, 70, 72 * S), (K.ACKNOWLEDGED, 0, 81, 20, 99 * S)


def test_unacknowledged_events_of_a_dead_publisher_may_be_lost():
    begin, _ = by_number(1, 101)
    sent = [*PUBLISHED, *rows("p", *ALL_BUT_TEN)]
    died = replace(metadata(contract=TOLD), gone=frozenset({"p"}))
    said = {"published": sent, "about": died}
    assert counted(*begin, *events(1, 100), **said) == {}
    assert counted(*begin, *events(1, 70), *events(81, 100), **said) == {"unacknowledged": 10}
    assert counted(*begin, *events(1, 65), *events(76, 100), **said) == {"lost": 5, "unacknowledged": 5}
    assert counted(*begin, *events(1, 70), **said) == {"lost": 20, "unacknowledged": 10}


def test_events_of_a_live_publisher_must_arrive_even_unacknowledged():
    begin, _ = by_number(1, 101)
    sent = [*PUBLISHED, *rows("p", *ALL_BUT_TEN)]
    got = *begin, *events(1, 70), *events(81, 100)
    assert counted(*got, published=sent, about=metadata(contract=TOLD)) == {"lost": 10}


def test_a_restarted_publisher_counts_as_having_died():
    begin, _ = by_number(1, 101)
    sent = [*PUBLISHED, *rows("p", *ALL_BUT_TEN), *rows("p", (K.SESSION, 0, 0, 0, 101 * S))]
    sent[-1] |= {"session": 1}
    got = *begin, *events(1, 70), *events(81, 100)
    about = metadata(contract=TOLD)
    assert counted(*got, published=sent, about=about) == {"unacknowledged": 10}
    again = replace(about, starts={"p": 2})
    assert counted(*got, published=sent[:-1], about=again) == {"unacknowledged": 10}
    sent_only = metadata(contract=replace(TOLD, published="sent"))
    assert counted(*got, published=sent, about=sent_only) == {"lost": 10}


def test_events_in_an_excluded_fault_are_not_counted_as_unacknowledged():
    begin, _ = by_number(1, 101)
    restored = RunFault("restart", "restart", "c1", 75.0, 75 * S, processes=("c1",))
    kill = RunFault("kill", "kill", "c1", 65.0, 65 * S, processes=("c1",))
    about = replace(metadata(contract=TOLD, faults=(kill, restored)), gone=frozenset({"p"}))
    sent = [*PUBLISHED, *rows("p", *ALL_BUT_TEN)]
    got = *begin, *events(1, 70), *events(81, 100)
    assert counted(*got, published=sent, about=about) == {"unacknowledged": 4}


def test_an_unplanned_stream_is_an_error():
    with pytest.raises(AnalysisError, match="c0 recorded events of stream 7"):
        counted((K.DELIVERED, 7, 1, 1, S))
