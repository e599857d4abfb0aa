"""A driver publishes its workload: on schedule without drift, in order, and again after losses."""

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.core import machine as m
from node.core.collection_marks import COLLECTS, HAS_KEYS, HEAD
from node.core.deliveries import RecordKind
from node.core.errors import LocalProtocolError, RemoteProtocolError
from node.protocols.sprinkler import messages as wire
from node.protocols.sprinkler.parameters import SprinklerParameters
from node.protocols.sprinkler.publishing.driver import Driver
from node.protocols.sprinkler.publishing.publisher import StreamPublisher
from node.protocols.sprinkler.storage.batches import unpack_events
from node.protocols.sprinkler.workload import DriverWorkload, driver_tag
from tests.node.cluster import specs

S = 1_000_000


class Bench:
    """A driver, with a proxy played by hand and a clock that fires its timers."""

    def __init__(self, rate_per_s=20_000, closed_loop=False, collect=None, keys=None, **parameters):
        parameters = {"flush_interval_us": 10_000} | parameters
        spec = next(s for s in specs(regions=1, parameters=parameters) if s.role == "driver")
        spec.workload.update(rate_per_s=rate_per_s, closed_loop=closed_loop, collect=collect)
        if keys:
            spec.workload["keys"] = keys
        self.driver = Driver(spec, Random(3))
        [self.publisher] = [load.publisher for load in self.driver.loads.values()]
        self.now_us = 0
        self.timers = {}
        self.sent = []
        self.records = []
        self.connection = 0
        self.writable = True
        self.give(m.Started())

    def give(self, given):
        for effect in self.driver.handle(given, self.now_us):
            if isinstance(effect, m.SetTimer):
                self.timers[effect.timer] = effect.at_us
            elif isinstance(effect, m.CancelTimer):
                self.timers.pop(effect.timer, None)
            elif isinstance(effect, m.Send):
                self.sent += [message for message in effect.messages if isinstance(message, wire.Publish)]
            elif isinstance(effect, m.Record):
                self.records.append(effect)
            elif isinstance(effect, m.AwaitWritable) and self.writable:
                self.give(m.Writable(effect.connection))

    def connect(self):
        self.connection += 1
        if self.timers.pop(("dial", "r0/proxy-0"), None) is not None:
            self.give(m.TimerFired(("dial", "r0/proxy-0")))
        self.give(m.Connected(self.connection, "r0/proxy-0"))
        self.give(m.Received(self.connection, (wire.Hello(wire.Role.PROXY, 1, "r0/proxy-0"),)))

    def run(self, until_us, late_us=0, answer=True):
        """Fire the driver's own due timers; acknowledge its publications at once if requested."""
        while (due := min(self.own_timers(), default=None)) and due[0] <= until_us:
            self.now_us = max(self.now_us, due[0] + late_us)
            del self.timers[due[1]]
            self.give(m.TimerFired(due[1]))
            if answer:
                self.acknowledge()
        self.now_us = until_us

    def own_timers(self):
        return [(at, timer) for timer, at in self.timers.items() if timer[0] in {"tick", "retry"}]

    def publishes(self, until_us=S):
        """Run; return all batches, which are acknowledged every 10 ms."""
        sent = []
        while self.now_us < until_us:
            self.run(self.now_us + 10_000, answer=False)
            sent += self.acknowledge()
        return sent

    def acknowledge(self):
        sent, self.sent = self.sent, []
        for batch in sent:
            first = batch.first_request
            self.give(m.Received(self.connection, (wire.Published(0, first, first, batch.count),)))
        return sent


def going(**given):
    """Return a driver that is connected and publishes from 0 on."""
    bench = Bench(**given)
    bench.connect()
    bench.give(m.Go(0))
    return bench


def requests(batches):
    return [(batch.first_request, batch.count) for batch in batches]


@pytest.mark.parametrize("late_us", [0, 4_999])
def test_an_open_loop_keeps_its_rate_however_late_its_timer_is(late_us):
    bench = going()
    bench.run(10 * S, late_us)
    assert abs(bench.publisher.requested - 200_000) <= 20_000 * 0.011


def test_a_batch_grows_while_the_previous_one_is_unacknowledged():
    bench = going(rate_per_s=1000, flush_interval_us=10_000, flush_intervals=4)
    bench.run(35_000, answer=False)
    assert len(bench.sent) == 1
    bench.acknowledge()  # and what has gathered goes out at once
    assert [batch.count for batch in bench.sent] == [20]
    bench.acknowledge()
    bench.run(S)
    assert len(bench.records) > 90  # a batch for every interval, while answers come in time


def test_a_batch_grows_for_a_bounded_time_and_to_a_bounded_size():
    bench = going(rate_per_s=1000, flush_interval_us=10_000, flush_intervals=4)
    bench.run(S, answer=False)
    assert {batch.count for batch in bench.sent[1:]} == {40}
    bench = going(rate_per_s=1000, flush_interval_us=10_000, flush_intervals=100, batch_limit_bytes=200)
    bench.run(S, answer=False)
    assert {batch.count for batch in bench.sent[1:]} == {20}


def test_nothing_is_published_before_the_start():
    bench = Bench()
    bench.connect()
    bench.give(m.Go(2 * S))
    bench.run(2 * S - 1)
    assert bench.publisher.requested == 0


def test_unacknowledged_batches_are_resent_with_the_same_boundaries():
    bench = going(flush_intervals=1)
    bench.run(50_000, answer=False)
    first, bench.sent = bench.sent, []
    assert len(first) > 3
    bench.give(m.Received(bench.connection, (wire.Published(0, 1, 1, first[0].count),)))
    bench.give(m.Disconnected(bench.connection, "broken"))
    bench.connect()
    assert bench.sent == first[1:]


def test_the_window_bounds_unacknowledged_data():
    bench = going(window_bytes=5_000)
    bench.run(S, answer=False)
    assert sum(len(batch.payload) for batch in bench.sent) < 5_000 + 1_100
    before = bench.publisher.requested
    bench.acknowledge()
    bench.run(S + 20_000)
    assert bench.publisher.requested > before


def test_a_closed_loop_always_fills_its_window():
    bench = going(closed_loop=True, window_bytes=200_000, batch_limit_bytes=50_000)
    bench.give(m.Nudge())
    for _ in range(5):
        assert sum(len(batch.payload) for batch in bench.sent) >= 150_000
        bench.acknowledge()


def test_a_proxy_that_reads_nothing_is_sent_at_most_a_burst():
    bench = Bench(burst_limit_bytes=5_000, flush_intervals=1)
    bench.connect()
    bench.writable = False
    bench.give(m.Go(0))
    bench.run(S, answer=False)
    handed = sum(len(batch.payload) for batch in bench.sent)
    assert handed <= 5_000 + 1_100
    bench.writable = True
    bench.give(m.Writable(bench.connection))
    bench.run(2 * S)
    assert bench.publisher.published >= 39_000


def test_a_stopped_driver_publishes_nothing_new_and_is_silent_once_it_has_its_last_answer():
    bench = going()
    bench.run(S)
    bench.run(2 * S, answer=False)
    bench.give(m.StopDrivers())
    published = bench.publisher.requested
    bench.run(3 * S, answer=False)
    assert bench.publisher.requested == published
    assert not bench.driver.progress().silent
    bench.acknowledge()
    assert bench.driver.progress() == m.NodeProgress({0: published}, silent=True)


def test_acknowledged_batches_are_recorded():
    bench = going()
    bench.run(S)
    published = [record for record in bench.records if record.kind == RecordKind.PUBLISHED]
    assert sum(record.count for record in published) == bench.publisher.published
    assert bench.records[0].kind == RecordKind.SESSION


def test_a_publication_refused_for_lack_of_room_is_retried():
    bench = going(retry_us=300_000)
    bench.run(20_000, answer=False)
    bench.give(m.StopDrivers())
    refused, bench.sent = bench.sent, []
    bench.give(m.Received(bench.connection, (wire.Refused(wire.Refusal.HISTORY_FULL, 0, 1, "full"),)))
    bench.run(S, answer=False)
    assert requests(bench.sent) == requests(refused)


def test_an_acknowledgement_out_of_turn_is_the_proxys_error():
    publisher = StreamPublisher(0, SprinklerParameters())
    publisher.publish(b"event")
    publisher.flush()
    with pytest.raises(RemoteProtocolError, match="request 2"):
        publisher.acknowledge(wire.Published(0, 2, 1, 1))


def test_unacknowledged_batches_stay_within_the_number_that_proxies_remember():
    publisher = StreamPublisher(0, SprinklerParameters(batch_limit_bytes=100, window_batches=2))
    for _ in range(5):
        publisher.publish(bytes(60))
    publisher.flush()
    assert requests(publisher.take_unsent(1 << 30)) == [(1, 1), (2, 1)]
    assert publisher.take_unsent(1 << 30) == []
    publisher.acknowledge(wire.Published(0, 1, 1, 1))
    assert requests(publisher.take_unsent(1 << 30)) == [(3, 1)]
    publisher.rewind()
    assert requests(publisher.take_unsent(1 << 30)) == [(2, 1), (3, 1)]


def test_an_event_larger_than_a_batch_is_the_callers_error():
    publisher = StreamPublisher(0, SprinklerParameters(batch_limit_bytes=100))
    publisher.publish(b"small")
    with pytest.raises(LocalProtocolError, match="101 bytes"):
        publisher.request(bytes(101))
    publisher.flush()
    assert requests(publisher.take_unsent(1 << 30)) == [(1, 1)]
    publisher.publish(bytes(101))
    with pytest.raises(LocalProtocolError, match="101 bytes"):
        publisher.flush()
    assert publisher.take_unsent(1 << 30) == []


def test_a_restarted_driver_publishes_different_events():
    events = [DriverWorkload(10, 1.0).events(1, 100, driver_tag(3, start)) for start in range(3)]
    assert len({event for made in events for event in made}) == 300


@given(st.lists(st.binary(max_size=60), max_size=60))
def test_no_batch_is_over_its_limit_and_requests_have_no_holes(events):
    publisher = StreamPublisher(0, SprinklerParameters(batch_limit_bytes=100))
    for event in events:
        publisher.publish(event)
    publisher.flush()
    batches = publisher.take_unsent(1 << 30)
    assert [
        request
        for batch in batches
        for request in range(batch.first_request, batch.first_request + batch.count)
    ] == list(range(1, len(events) + 1))
    assert all(len(batch.payload) <= 100 + 4 * batch.count for batch in batches)


@given(st.integers(4, 200), st.integers(1, 100), st.integers(1, 10**9), st.integers(0, 1000))
def test_events_have_the_requested_size_and_no_two_are_equal(size, count, first, driver):
    events = DriverWorkload(size, 1.0).events(first, count, driver)
    assert {len(event) for event in events} == {size}
    assert len(set(events)) == count


@given(st.integers(1, 30), st.integers(1, 70_000), st.integers(1, 1 << 40))
def test_events_generated_in_bulk_equal_single_ones(size, count, first):
    events = DriverWorkload(size, 1.0).events(first, count, 77)
    for at in {0, count // 3, count - 1}:
        assert events[at] == DriverWorkload(size, 1.0).events(first + at, 1, 77)[0]


def test_events_with_keys_begin_with_them_and_all_differ():
    keys = {"distribution": "zipf", "skew": 1.1, "count": 50, "insertions": 0.0}
    collect = {"predicate": "same_key", "argument": 8}
    bench = going(collect=collect, keys=keys)
    sent = bench.publishes()
    events = [event for batch in sent for event in unpack_events(batch.count, 10, batch.payload)]
    assert {batch.predicate for batch in sent} == {wire.Predicate.SAME_KEY}
    drawn = {int.from_bytes(event[:8]) for event in events}
    assert drawn == set(range(1, 51))
    assert [event[8:] for event in events] == [(n + 1 & 0xFFFF).to_bytes(2) for n in range(len(events))]


@pytest.mark.parametrize("size", [1, 4, 8, 9, 30])
def test_keyed_events_have_the_requested_size(size):
    drawn = [number.to_bytes(8) for number in (7, 300, 7)]
    events = DriverWorkload(size, 1.0).events(5, 3, 77, drawn)
    assert [event[:8] for event in events] == [key[-size:] for key in drawn]
    assert {len(event) for event in events} == {size}


def test_a_workload_without_a_rate_must_be_a_closed_loop():
    with pytest.raises(ValueError, match="workload"):
        DriverWorkload.from_mapping({"event_size_bytes": 10, "rate_per_s": None, "closed_loop": False})


def test_periodic_events_collect_and_the_others_are_data():
    collect = {"predicate": "older_than", "argument": 3 * S, "every_us": 200_000}
    sent = going(rate_per_s=1000, collect=collect, flush_interval_us=10_000).publishes()
    collecting = [batch for batch in sent if batch.kind == wire.EventKind.GC]
    assert [batch.count for batch in collecting] == [1] * 4
    assert {(batch.predicate, batch.argument) for batch in collecting} == {(wire.Predicate.OLDER_THAN, 3 * S)}
    data = [batch for batch in sent if batch.kind == wire.EventKind.DATA]
    assert {batch.predicate for batch in data} == {wire.Predicate.NONE}
    gaps = [later.first_request - earlier.first_request for earlier, later in pairwise(collecting)]
    assert all(190 <= gap <= 210 for gap in gaps), "a fifth of a second of 1000 events/s"


ZIPF = {"distribution": "zipf", "skew": 1.1, "count": 9, "insertions": 0.0}


def test_collecting_events_and_all_keys_are_marked():
    bench = going(rate_per_s=1000, collect={"predicate": "last", "argument": 7, "one_of": 150})
    bench.publishes()
    marks = [HEAD.unpack(record.mark) for record in bench.records if record.mark]
    assert marks == [(0, 1, first, COLLECTS) for first in range(150, 901, 150)]
    bench = going(collect={"predicate": "same_key", "argument": 8}, keys=ZIPF)
    sent = bench.publishes(100_000)
    records = [record for record in bench.records if record.kind == RecordKind.PUBLISHED]
    for batch, record in zip(sent, records, strict=True):
        assert HEAD.unpack_from(record.mark) == (0, batch.count, record.first_seq, COLLECTS | HAS_KEYS)
        events = unpack_events(batch.count, batch.event_bytes, batch.payload)
        assert record.mark[HEAD.size :] == b"".join(event[:8] for event in events)
    bench = going(collect={"predicate": "last", "argument": 7})
    bench.publishes(100_000)
    assert not any(record.mark for record in bench.records), "plain events are not marked"
