"""A proxy with inputs by hand: what it accepts, refuses and remembers."""

from random import Random

import pytest

from node.core import machine as m
from node.core.epochs import first_seq_of_epoch
from node.protocols.sprinkler import messages as wire
from node.protocols.sprinkler.proxy import Proxy
from node.protocols.sprinkler.storage.batch_list import BATCH_BYTES
from tests.node.cluster import specs
from tests.node.protocols.sprinkler.by_hand import ByHand

OWN, OTHERS, UNKNOWN = 1, 0, 9
PEER, DRIVER, CLIENT = "r0/proxy-0", "r1/driver-0", "r1/client-0"


def proxy(**given):
    return Proxy(next(spec for spec in specs(regions=2, **given) if spec.name == "r1/proxy-0"), Random(1))


def connected(**parameters):
    """Return r1's proxy of two regions, connected with a peer, a driver and a client."""
    bench = ByHand(proxy(parameters=parameters))
    for name in (PEER, DRIVER, CLIENT):
        bench.connect(name, wire.Advertisement((wire.Counter(OWN, 0), wire.Counter(OTHERS, 0))))
    bench.say(PEER, wire.Paths((wire.Hop(OTHERS, 0),)))
    bench.sent(PEER)
    return bench


@pytest.fixture
def bench():
    return connected()


def refusal(bench, name):
    (refused,) = bench.sent(name, wire.Refused)
    return wire.Refusal(refused.code)


def cnt(bench, stream=OTHERS):
    return bench.machine.history.streams[stream].cnt


def publish(first_request=1, events=(b"one", b"two"), stream=OWN):
    return wire.Publish(
        wire.EventKind.DATA, 0, stream, first_request, len(events), len(events[0]), 0, b"".join(events)
    )


def data(first_seq, count=2, stream=OTHERS, byte=b"x"):
    return wire.Events(wire.EventKind.DATA, 0, stream, first_seq, count, 1, 0, 0, byte * count)


def test_a_restarted_driver_numbers_from_one_as_a_new_publisher(bench):
    bench.say(DRIVER, publish())
    bench.lose(DRIVER)
    bench.connect(DRIVER, publish(), incarnation=2)
    assert bench.sent(DRIVER, wire.Published) == [wire.Published(OWN, 1, 3, 2)]


@pytest.mark.parametrize(
    ("name", "message", "refused"),
    [
        (DRIVER, publish(stream=OTHERS), wire.Refusal.NOT_OWNER),
        (DRIVER, publish(stream=UNKNOWN), wire.Refusal.UNKNOWN_STREAM),
        (CLIENT, wire.Subscribe(UNKNOWN, 0), wire.Refusal.UNKNOWN_STREAM),
    ],
)
def test_messages_on_other_regions_streams_are_refused_and_the_peer_stays(bench, name, message, refused):
    bench.say(name, message)
    assert refusal(bench, name) is refused
    assert not bench.closed


def test_a_full_history_refuses_publications_and_logs_it_once():
    bench = connected(history_limit_bytes=BATCH_BYTES + 8, batch_limit_bytes=8)
    for request in (1, 3, 5):
        bench.say(DRIVER, publish(request))
    answers = [type(message) for message in bench.sent(DRIVER, wire.Published, wire.Refused)]
    assert answers == [wire.Published, wire.Refused, wire.Refused]
    assert len(bench.logged("history_full")) == 1


def test_remote_events_are_stored_once_in_order_and_overlaps_are_cut(bench):
    bench.say(CLIENT, wire.Subscribe(OTHERS, 0))
    bench.say(PEER, data(1, 2), data(1, 2), data(2, 3, byte=b"y"))
    assert cnt(bench) == 4
    got = [(batch.first_seq, bytes(batch.payload)) for batch in bench.sent(CLIENT, wire.Events)]
    assert got == [(1, b"xx"), (3, b"yy")]


def test_a_gap_is_requested_once_and_not_mistaken_for_collected_events(bench):
    bench.say(PEER, data(1))
    bench.sent(PEER)
    bench.say(PEER, data(5))
    bench.say(PEER, data(7))
    assert cnt(bench) == 2
    assert bench.sent(PEER, wire.Subscribe) == [wire.Subscribe(OTHERS, 2)]


def test_a_tombstone_covers_its_whole_range(bench):
    bench.say(PEER, data(1), wire.Events(wire.EventKind.TOMBSTONE, 0, OTHERS, 3, 8, 0, 0, 0, b""), data(11))
    assert cnt(bench) == 12
    bench.say(CLIENT, wire.Subscribe(OTHERS, 5))
    tombstone, last = bench.sent(CLIENT, wire.Events)
    assert (tombstone.kind, tombstone.first_seq, tombstone.count) == (wire.EventKind.TOMBSTONE, 6, 5)
    assert last.first_seq == 11


def test_a_subscriber_that_is_not_writable_is_sent_at_most_its_burst():
    bench = connected(burst_limit_bytes=2000)
    bench.say(CLIENT, wire.Subscribe(OWN, 0))
    for number in range(100):
        bench.say(DRIVER, publish(1 + number, (bytes(500),)))
    first = bench.sent(CLIENT, wire.Events)
    assert len(first) <= 2000 // 500
    assert cnt(bench, OWN) == 100
    bench.give(m.Writable(bench.connections[CLIENT]))
    second = bench.sent(CLIENT, wire.Events)
    assert 0 < len(second) <= 2000 // 500
    assert [batch.first_seq for batch in first + second] == list(range(1, len(first + second) + 1))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (CLIENT, data(1)),
        (DRIVER, wire.Subscribe(OWN, 0)),
        (CLIENT, wire.Hello(0, 1, "again")),
        (PEER, publish()),
    ],
)
def test_a_message_that_a_role_may_not_send_closes_its_connection_alone(bench, name, message):
    bench.say(name, message)
    assert refusal(bench, name) is wire.Refusal.UNEXPECTED
    assert bench.closed == {bench.connections[name]}


def test_messages_before_hello_are_refused(bench):
    bench.connections["stranger"] = 99
    bench.give(m.Connected(99))
    bench.say("stranger", publish())
    assert refusal(bench, "stranger") is wire.Refusal.UNEXPECTED
    assert bench.closed == {99}


def test_garbage_is_answered_logged_once_and_closes_its_connection_alone(bench):
    bench.give(m.Malformed(bench.connections[CLIENT], "protocol version 9, expected 1"))
    assert refusal(bench, CLIENT) is wire.Refusal.MALFORMED
    assert bench.closed == {bench.connections[CLIENT]}
    warnings = [e for e in bench.effects if isinstance(e, m.Log) and e.level == "warning"]
    assert [warning.fields["reason"] for warning in warnings] == ["protocol version 9, expected 1"]


def test_a_proxy_of_another_run_is_refused(bench):
    bench.connect("elsewhere/proxy-0")
    assert refusal(bench, "elsewhere/proxy-0") is wire.Refusal.UNEXPECTED
    assert bench.closed == {bench.connections["elsewhere/proxy-0"]}


def test_a_newer_connection_replaces_an_older_one(bench):
    older = bench.connections[PEER]
    bench.connect(PEER)
    assert older in bench.closed
    bench.say(PEER, wire.Advertisement((wire.Counter(OTHERS, 5), wire.Counter(OWN, 0))))
    assert bench.sent(PEER, wire.Subscribe) == [wire.Subscribe(OTHERS, 0)]


def test_the_first_change_of_paths_is_sent_at_once_and_later_ones_together(bench):
    bench.give(m.TimerFired(("paths",)), after_us=50_000)
    gone, back = wire.Paths(()), wire.Paths((wire.Hop(OTHERS, 0),))
    bench.say(PEER, gone)
    assert len(bench.sent(PEER, wire.Paths)) == 1
    for paths in (back, gone, back):
        bench.say(PEER, paths)
    assert bench.sent(PEER, wire.Paths) == []
    bench.give(m.TimerFired(("paths",)), after_us=50_000)
    [sent] = bench.sent(PEER, wire.Paths)
    assert [hop.region for hop in sent.hops if hop.stream == OTHERS] == [1, 0]


def test_publications_wait_until_a_restarted_proxy_has_recovered_its_stream():
    bench = ByHand(proxy())
    bench.connect(DRIVER, wire.Advertisement((wire.Counter(OWN, 4),)), publish(50))
    bench.connect(PEER, wire.Advertisement((wire.Counter(OWN, 4), wire.Counter(OTHERS, 0))))
    assert bench.sent(DRIVER, wire.Published) == []
    assert wire.Subscribe(OWN, 0) in bench.sent(PEER, wire.Subscribe)
    bench.say(PEER, data(1, 4, stream=OWN))
    bench.give(m.TimerFired(("restore",)), after_us=2_000_000)
    assert bench.sent(DRIVER, wire.Published) == [wire.Published(OWN, 50, first_seq_of_epoch(1), 2)], (
        "in another epoch"
    )


def test_replicas_without_a_configuration_service_are_refused():
    """Check the refusal: no process would define the chain's members or the source of a lost state."""
    with pytest.raises(ValueError, match="r1/proxy-0: 2 proxies in a region form a chain, which needs"):
        proxy(proxies=2)
