"""A proxy alone, fed by hand: what it accepts, what it refuses, what it remembers."""

from random import Random

import pytest

from node.core import machine as m
from node.core.epochs import first_seq_of_epoch
from node.protocols.sprinkler.messages import (
    Advertisement,
    Counter,
    EventKind,
    Events,
    Hello,
    Hop,
    Paths,
    Publish,
    Published,
    Refusal,
    Refused,
    Role,
    Subscribe,
)
from node.protocols.sprinkler.parameters import SprinklerParameters
from node.protocols.sprinkler.proxy import Proxy
from node.protocols.sprinkler.storage.batch_list import BATCH_BYTES
from tests.node.cluster import specs

OWN, OTHERS, UNKNOWN = 1, 0, 9


class Bench:
    """r1's proxy of two regions, with a hand at every connection."""

    def __init__(self, **parameters):
        spec = next(spec for spec in specs(regions=2, parameters=parameters) if spec.name == "r1/proxy-0")
        self.proxy = Proxy(spec, Random(1))
        self.now_us = 0
        self.effects = []
        self.closed = set()
        self.connections = 0
        self.give(m.Started())
        self.peer = self.connect("r0/proxy-0", Role.PROXY)
        self.driver = self.connect("r1/driver-0", Role.DRIVER)
        self.client = self.connect("r1/client-0", Role.CLIENT)
        for connection in (self.peer, self.driver, self.client):
            self.receive(connection, Advertisement((Counter(OWN, 0), Counter(OTHERS, 0))))
        self.receive(self.peer, Paths((Hop(OTHERS, 0),)))
        self.sent(self.peer)

    def give(self, given, after_us=10_000):
        self.now_us += after_us
        effects = self.proxy.handle(given, self.now_us)
        self.effects += effects
        self.closed |= {effect.connection for effect in effects if isinstance(effect, m.Close)}

    def connect(self, name, role, incarnation=1):
        self.connections += 1
        self.give(m.Connected(self.connections))
        self.receive(self.connections, Hello(role, incarnation, name))
        return self.connections

    def receive(self, connection, *messages):
        self.give(m.Received(connection, messages))

    def sent(self, connection, *kinds):
        """Return the messages to a connection since the last call, of these kinds."""
        found = [
            message
            for effect in self.effects
            if isinstance(effect, m.Send) and effect.connection == connection
            for message in effect.messages
        ]
        self.effects = [e for e in self.effects if not (isinstance(e, m.Send) and e.connection == connection)]
        return [message for message in found if not kinds or isinstance(message, kinds)]

    def refusal(self, connection):
        (refused,) = self.sent(connection, Refused)
        return Refusal(refused.code)

    def cnt(self, stream):
        return self.proxy.history.streams[stream].cnt


def publish(first_request=1, events=(b"one", b"two"), stream=OWN):
    return Publish(EventKind.DATA, 0, stream, first_request, len(events), len(events[0]), 0, b"".join(events))


def data(first_seq, count=2, stream=OTHERS, byte=b"x"):
    return Events(EventKind.DATA, 0, stream, first_seq, count, 1, 0, 0, byte * count)


def test_a_driver_that_started_again_numbers_from_one_and_is_not_taken_for_its_former_self():
    bench = Bench()
    bench.receive(bench.driver, publish())
    bench.give(m.Disconnected(bench.driver, "broken"))
    again = bench.connect("r1/driver-0", Role.DRIVER, incarnation=2)
    bench.receive(again, publish())
    assert bench.sent(again, Published) == [Published(OWN, 1, 3, 2)]


@pytest.mark.parametrize(
    ("stream", "refusal"), [(OTHERS, Refusal.NOT_OWNER), (UNKNOWN, Refusal.UNKNOWN_STREAM)]
)
def test_a_publication_on_a_stream_of_others_is_refused_and_the_driver_stays(stream, refusal):
    bench = Bench()
    bench.receive(bench.driver, publish(stream=stream))
    assert bench.refusal(bench.driver) is refusal
    assert bench.driver not in bench.closed


def test_a_subscription_to_an_unknown_stream_is_refused():
    bench = Bench()
    bench.receive(bench.client, Subscribe(UNKNOWN, 0))
    assert bench.refusal(bench.client) is Refusal.UNKNOWN_STREAM


def test_a_full_history_refuses_publications_and_says_so_once():
    bench = Bench(history_limit_bytes=BATCH_BYTES + 8, batch_limit_bytes=8)
    for request in (1, 3, 5):
        bench.receive(bench.driver, publish(request))
    assert [type(message) for message in bench.sent(bench.driver, Published, Refused)] == [
        Published,
        Refused,
        Refused,
    ]
    full = [
        effect for effect in bench.effects if isinstance(effect, m.Log) and effect.event == "history_full"
    ]
    assert len(full) == 1


def test_remote_events_are_stored_once_in_order_and_overlaps_are_cut():
    bench = Bench()
    bench.receive(bench.client, Subscribe(OTHERS, 0))
    bench.receive(bench.peer, data(1, 2), data(1, 2), data(2, 3, byte=b"y"))
    assert bench.cnt(OTHERS) == 4
    got = [(batch.first_seq, bytes(batch.payload)) for batch in bench.sent(bench.client, Events)]
    assert got == [(1, b"xx"), (3, b"yy")]


def test_a_hole_is_not_taken_for_collected_events_but_asked_for_once():
    bench = Bench()
    bench.receive(bench.peer, data(1))
    bench.sent(bench.peer)
    bench.receive(bench.peer, data(5))
    bench.receive(bench.peer, data(7))
    assert bench.cnt(OTHERS) == 2
    assert bench.sent(bench.peer, Subscribe) == [Subscribe(OTHERS, 2)]


def test_a_tombstone_covers_its_whole_range():
    bench = Bench()
    bench.receive(bench.peer, data(1), Events(EventKind.TOMBSTONE, 0, OTHERS, 3, 8, 0, 0, 0, b""), data(11))
    assert bench.cnt(OTHERS) == 12
    bench.receive(bench.client, Subscribe(OTHERS, 5))
    tombstone, last = bench.sent(bench.client, Events)
    assert (tombstone.kind, tombstone.first_seq, tombstone.count) == (EventKind.TOMBSTONE, 6, 5)
    assert last.first_seq == 11


def test_nothing_is_sent_to_a_subscriber_that_is_gone():
    bench = Bench()
    bench.receive(bench.client, Subscribe(OWN, 0))
    bench.give(m.Disconnected(bench.client, "broken"))
    bench.sent(bench.client)
    bench.receive(bench.driver, publish())
    assert bench.sent(bench.client) == []


def test_a_subscriber_that_is_not_writable_is_handed_no_more_than_its_burst():
    bench = Bench(burst_limit_bytes=2000)
    bench.receive(bench.client, Subscribe(OWN, 0))
    for number in range(100):
        bench.receive(bench.driver, publish(1 + number, (bytes(500),)))
    first = bench.sent(bench.client, Events)
    assert len(first) <= 2000 // 500
    assert bench.cnt(OWN) == 100
    bench.give(m.Writable(bench.client))
    second = bench.sent(bench.client, Events)
    assert 0 < len(second) <= 2000 // 500
    assert [batch.first_seq for batch in first + second] == list(range(1, len(first + second) + 1))


def test_a_peer_that_reads_nothing_is_closed_before_small_messages_pile_up():
    bench = Bench(control_limit_bytes=1024, burst_limit_bytes=1000)
    for number in range(200):
        bench.receive(bench.driver, publish(1 + number, (b"e",)))
        if bench.driver in bench.closed:
            break
    assert bench.driver in bench.closed
    assert number > 10


@pytest.mark.parametrize(
    ("who", "message"),
    [
        ("client", data(1)),
        ("driver", Subscribe(OWN, 0)),
        ("client", Hello(0, 1, "again")),
        ("peer", publish()),
    ],
)
def test_a_message_that_a_role_may_not_send_closes_its_connection_alone(who, message):
    bench = Bench()
    bench.receive(getattr(bench, who), message)
    assert bench.refusal(getattr(bench, who)) is Refusal.UNEXPECTED
    assert bench.closed == {getattr(bench, who)}


def test_nothing_is_taken_before_hello():
    bench = Bench()
    bench.give(m.Connected(99))
    bench.receive(99, publish())
    assert bench.refusal(99) is Refusal.UNEXPECTED
    assert bench.closed == {99}


def test_garbage_is_answered_logged_once_and_closes_its_connection_alone():
    bench = Bench()
    bench.give(m.Malformed(bench.client, "protocol version 9, expected 1"))
    assert bench.refusal(bench.client) is Refusal.MALFORMED
    assert bench.closed == {bench.client}
    warnings = [e for e in bench.effects if isinstance(e, m.Log) and e.level == "warning"]
    assert [warning.fields["reason"] for warning in warnings] == ["protocol version 9, expected 1"]


def test_a_proxy_of_another_run_is_refused():
    bench = Bench()
    stranger = bench.connect("elsewhere/proxy-0", Role.PROXY)
    assert bench.refusal(stranger) is Refusal.UNEXPECTED
    assert stranger in bench.closed


def test_a_newer_connection_takes_the_place_of_an_older_one():
    bench = Bench()
    newer = bench.connect("r0/proxy-0", Role.PROXY)
    assert bench.peer in bench.closed
    bench.receive(newer, Advertisement((Counter(OTHERS, 5), Counter(OWN, 0))))
    assert bench.sent(newer, Subscribe) == [Subscribe(OTHERS, 0)]


def test_a_silent_peer_is_aborted_and_its_streams_come_from_a_peer_with_more():
    bench = Bench(advertisement_period_us=1_000_000, silence_periods=1.5)
    start_us = bench.now_us
    for _ in range(4):
        bench.receive(bench.driver, Advertisement(()))
        bench.receive(bench.client, Advertisement(()))
        bench.give(m.TimerFired(("silence",)), after_us=400_000)
    assert bench.peer in bench.closed
    assert bench.closed == {bench.peer}
    (silent,) = [e for e in bench.effects if isinstance(e, m.Log) and e.event == "peer_silent"]
    assert silent.fields["peer"] == "r0/proxy-0"
    assert bench.now_us - start_us < 3_000_000


def test_after_a_long_sleep_no_peer_is_blamed_for_silence():
    bench = Bench()
    bench.give(m.TimerFired(("silence",)), after_us=60_000_000)
    assert bench.closed == set()


def test_publications_wait_until_a_restarted_proxy_has_its_stream_back():
    spec = next(spec for spec in specs(regions=2) if spec.name == "r1/proxy-0")
    bench = Bench.__new__(Bench)
    bench.proxy, bench.now_us, bench.effects, bench.closed, bench.connections = (
        Proxy(spec, Random(1)),
        0,
        [],
        set(),
        0,
    )
    bench.give(m.Started())
    driver = bench.connect("r1/driver-0", Role.DRIVER)
    peer = bench.connect("r0/proxy-0", Role.PROXY)
    bench.receive(driver, Advertisement((Counter(OWN, 4),)), publish(50))
    bench.receive(peer, Advertisement((Counter(OWN, 4), Counter(OTHERS, 0))))
    assert bench.sent(driver, Published) == []
    assert Subscribe(OWN, 0) in bench.sent(peer, Subscribe)
    bench.receive(peer, data(1, 4, stream=OWN))
    bench.give(m.TimerFired(("restore",)), after_us=2_000_000)
    assert bench.sent(driver, Published) == [Published(OWN, 50, first_seq_of_epoch(1), 2)], "in another epoch"


def test_replicas_without_a_configuration_service_are_refused():
    """Check the refusal: no process would define the chain's members or the source of a lost state."""
    with pytest.raises(ValueError, match="r0/proxy-0: 2 proxies in a region form a chain, which needs"):
        Proxy(specs(regions=1, proxies=2)[0], Random(1))


def test_a_peer_that_could_not_even_be_greeted_is_refused_beforehand():
    with pytest.raises(ValueError, match="must be at least 1024"):
        SprinklerParameters(control_limit_bytes=1023)
    assert SprinklerParameters(control_limit_bytes=1024, burst_limit_bytes=1)
