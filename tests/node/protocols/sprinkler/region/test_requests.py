"""Requests for events (paper 3.2, Fig. 3): peers, ranges, and deliveries."""

from node.protocols.sprinkler.messages import Answered, Counter, Events, Notify, Refusal, Request, Role
from node.protocols.sprinkler.publishing.channel import SprinklerChannel
from node.protocols.sprinkler.region.requests import Requests
from node.protocols.sprinkler.storage.batches import tombstone

TIMEOUT_US = 500_000
EVENT_BYTES = 10
LIMIT_BYTES = 100_000  # of all streams: a window of 10,000 events, once their size is known


def channel(name, role=Role.CLIENT):
    made = SprinklerChannel(hash(name) & 0xFFFF, None, 0, 1 << 20)
    made.name, made.role = name, role
    return made


class Node:
    """A context of `Requests` that records the calls."""

    def __init__(self, *, proxy=True):
        self.now_us = 0
        self.sent = []
        self.delivered = []
        self.refused = []
        self.proxy = channel("proxy", Role.PROXY) if proxy else None
        self.requests = Requests(self, [0], LIMIT_BYTES, TIMEOUT_US)

    def send(self, to, *messages):
        self.sent += [(to.name, message) for message in messages]

    def refuse(self, to, code, reason, stream=0):
        self.refused.append((to.name, code))

    def proxy_channel(self):
        return self.proxy

    def deliver(self, batch, cnt):
        self.delivered.append((batch.first_seq, cnt))

    def asked(self):
        """Return the requests since the last call: peer, from and to."""
        sent, self.sent = self.sent, []
        assert all(type(message) is Request for _, message in sent)
        return [(name, message.next, message.cnt) for name, message in sent]

    def notified(self, by, cnt):
        self.requests.receive_notify(by, Notify((Counter(0, cnt),)))

    def came(self, by, first_seq, last_seq):
        self.requests.receive_events(by, batch(first_seq, last_seq))

    def answered(self, by, next_seq, last, cnt):
        self.requests.answered(by, Answered(0, next_seq, last, cnt))

    @property
    def progress(self):
        return self.requests.streams[0]


def batch(first_seq, last_seq, event_bytes=EVENT_BYTES):
    count = last_seq - first_seq + 1
    return Events(0, 0, 0, first_seq, count, event_bytes, 0, 0, bytes(count * event_bytes))


A, B, C = channel("a"), channel("b"), channel("c")


def test_a_client_requests_the_unrequested_events_from_the_notifier():
    node = Node()
    node.notified(A, 10)
    node.notified(B, 10)
    node.notified(B, 7)
    node.notified(C, 25)
    assert node.asked() == [("a", 1, 10), ("c", 11, 25)]


def test_events_are_delivered_in_order_whatever_order_they_come_in():
    node = Node()
    node.notified(A, 10)
    node.notified(B, 20)
    node.notified(C, 30)
    node.came(C, 21, 30)
    node.came(B, 11, 20)
    assert node.delivered == []
    node.came(A, 1, 10)
    assert node.delivered == [(1, 10), (11, 20), (21, 30)]
    assert node.progress.early_bytes == 0


def test_events_are_delivered_once():
    node = Node()
    node.notified(A, 20)
    node.came(A, 1, 10)
    node.came(A, 1, 10)
    node.came(A, 6, 15)
    node.came(A, 1, 20)
    assert node.delivered == [(1, 10), (11, 15), (16, 20)]
    assert node.requests.duplicates == 10


def test_a_tombstone_stands_for_all_that_it_covers():
    node = Node()
    node.notified(A, 10)
    node.requests.receive_events(A, tombstone(0, 1, 1_000_000))
    node.notified(B, 1_000_010)
    assert node.delivered == [(1, 1_000_000)]
    assert node.asked() == [("a", 1, 10), ("b", 1_000_001, 1_000_010)]


def test_events_of_a_stream_that_does_not_exist_are_refused():
    node = Node()
    node.requests.receive_events(A, Events(0, 0, 9, 1, 1, 1, 0, 0, b"x"))
    assert node.refused == [("a", Refusal.UNKNOWN_STREAM)]


def test_unrequested_events_out_of_sequence_are_not_kept():
    node = Node()
    node.came(A, 5, 10)
    assert node.progress.early == []


def test_events_missing_from_an_answer_are_requested_from_the_proxy():
    node = Node()
    node.notified(A, 30)
    node.asked()
    node.came(A, 11, 15)
    node.came(A, 26, 30)
    node.answered(A, 1, 30, 30)
    assert node.asked() == [("proxy", 1, 10), ("proxy", 16, 25)]
    node.came(node.proxy, 1, 10)
    node.came(node.proxy, 16, 25)
    assert node.delivered == [(1, 10), (11, 15), (16, 25), (26, 30)]


def test_a_complete_answer_causes_no_further_request():
    node = Node()
    node.notified(A, 10)
    node.came(A, 1, 10)
    node.answered(A, 1, 10, 10)
    assert node.asked() == [("a", 1, 10)]
    assert not node.progress.asked


def test_events_requested_from_a_lost_peer_are_requested_from_the_proxy():
    node = Node()
    node.notified(A, 10)
    node.notified(B, 20)
    node.notified(A, 30)
    node.came(A, 1, 5)
    node.asked()
    node.requests.lost(A)
    assert node.asked() == [("proxy", 6, 10), ("proxy", 21, 30)]


def test_a_peer_that_sends_nothing_for_the_timeout_is_given_up():
    node = Node()
    node.notified(A, 10)
    node.notified(A, 20)
    node.asked()
    node.now_us = TIMEOUT_US - 1
    node.requests.sweep()
    assert node.asked() == []
    node.now_us = TIMEOUT_US
    node.requests.sweep()
    assert node.asked() == [("proxy", 1, 10), ("proxy", 11, 20)]
    node.came(A, 1, 20)  # late, and welcome
    assert node.delivered == [(1, 20)]


def test_a_peer_that_keeps_sending_does_not_time_out():
    node = Node()
    node.notified(A, 100)
    node.asked()
    for step in range(10):
        node.now_us += TIMEOUT_US // 2
        node.came(A, 10 * step + 1, 10 * step + 10)
        node.requests.sweep()
    assert node.asked() == []


def test_without_a_proxy_it_waits_for_one():
    node = Node(proxy=False)
    node.notified(A, 10)
    node.asked()
    node.requests.lost(A)
    node.requests.sweep()
    assert node.asked() == []
    node.proxy = channel("proxy", Role.PROXY)
    node.requests.proxy_opened()
    assert node.asked() == [("proxy", 1, 10)]


def test_events_that_the_proxy_lacks_are_no_longer_requested():
    node = Node()
    node.notified(A, 50)
    node.came(A, 1, 20)
    node.answered(A, 1, 50, 50)
    assert node.asked() == [("a", 1, 50), ("proxy", 21, 50)]
    node.answered(node.proxy, 21, 30, 30)  # its 21 to 30 have not come, which is for the sweep
    assert node.progress.next == 31
    node.came(node.proxy, 21, 30)
    node.notified(B, 50)
    assert node.asked() == [("b", 31, 50)]


def test_a_lying_neighbour_does_not_stop_the_stream():
    node = Node()
    node.notified(A, 1 << 60)
    (of, first, last) = node.asked()[0]
    assert (of, first) == ("a", 1)
    assert last < 1_000_000
    node.answered(A, first, last, last)
    assert node.asked() == [("proxy", first, last)]
    node.came(node.proxy, 1, 10)
    node.answered(node.proxy, first, 10, 10)
    node.notified(B, 20)
    assert node.asked() == [("b", 11, 20)]


def test_the_proxys_advertisement_is_a_notification_without_a_timely_other_one():
    node = Node()
    node.requests.advertised([Counter(0, 10)])
    node.requests.sweep()
    assert node.asked() == []
    node.now_us = TIMEOUT_US
    node.requests.sweep()
    assert node.asked() == [("proxy", 1, 10)]


def test_in_a_slow_region_nothing_is_requested_because_of_an_advertisement():
    node = Node()
    node.requests.advertised([Counter(0, 10)])
    node.notified(A, 4)
    assert node.asked() == [("a", 1, 4)]
    node.came(A, 1, 4)
    node.now_us = TIMEOUT_US
    node.requests.sweep()
    assert node.asked() == []
    node.requests.advertised([Counter(0, 10)])
    node.now_us = 2 * TIMEOUT_US
    node.requests.sweep()
    assert node.asked() == [("proxy", 5, 10)]


def test_a_client_far_behind_requests_a_window_at_a_time():
    node = Node()
    node.came(A, 1, 10)  # 10 bytes each: 10,000 events are a window
    node.notified(A, 10_000_000)
    assert node.asked() == [("a", 11, 10_010)]
    node.came(A, 11, 4_000)
    assert node.asked() == []  # less than half of it is free
    node.came(A, 4_001, 6_000)
    assert node.asked() == [("a", 10_011, 16_000)]
    node.notified(B, 10_000_001)
    assert node.asked() == []


def test_events_discarded_by_peers_are_requested_from_the_proxy_at_once():
    node = Node()
    node.came(A, 1, 10)
    node.notified(A, 30_000)
    node.came(A, 9_001, 10_010)
    node.answered(A, 11, 10_010, 30_000)
    assert node.asked() == [("a", 11, 10_010), ("proxy", 11, 9_000)]
    node.progress.discarded = 20_000
    node.came(node.proxy, 11, 9_000)
    assert node.asked() == [("proxy", 10_011, 20_010)]


def test_early_events_are_bounded_and_dropped_ones_are_requested_again():
    node = Node()
    node.notified(A, 100)
    node.came(A, 1, 100)
    node.notified(A, 200)
    node.notified(B, 9_000)
    node.asked()
    big = Events(0, 0, 0, 201, 8_000, EVENT_BYTES, 0, 0, bytes(80_000))
    node.requests.receive_events(B, big)
    node.requests.receive_events(B, Events(0, 0, 0, 8_201, 800, 30, 0, 0, bytes(24_000)))
    assert node.progress.early == [big]
    node.answered(B, 201, 9_000, 9_000)
    assert node.asked() == [("proxy", 8_201, 9_000)]
    node.came(A, 101, 200)
    assert node.progress.cnt == 8_200


def test_no_event_is_requested_while_the_application_takes_none():
    node = Node()
    node.requests.paused = True
    node.notified(A, 10)
    node.notified(B, 20)
    assert node.asked() == []
    node.requests.resume()
    assert node.asked() == [("b", 1, 20)]
