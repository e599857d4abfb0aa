"""Answers to REQUESTs (paper 3.2, Fig. 3: receiveRequest): content, order and limits."""

import pytest

from node.protocols.sprinkler.chain import answers
from node.protocols.sprinkler.chain.answers import Answers
from node.protocols.sprinkler.messages import Answered, Events, Request
from node.protocols.sprinkler.publishing.channel import SprinklerChannel
from node.protocols.sprinkler.region.recv import Recv

BATCH_BYTES = 1000


class Peer:
    """A channel that accepts `room_bytes` at a time, and the messages that it received."""

    def __init__(self, store, room_bytes=1 << 20):
        self.room_bytes = room_bytes
        self.channel = SprinklerChannel(1, None, 0, room_bytes)
        self.got = []
        self.largest = 0
        self.dropped = []
        self.answers = Answers(store, self._send, lambda channel, reason: self.dropped.append(reason))

    def _send(self, channel, *messages):
        self.got += messages
        channel.room_bytes -= sum(len(each.payload) for each in messages if type(each) is Events)
        self.largest = max(self.largest, len(messages))
        channel.awaiting = channel.room_bytes <= 0

    def ask(self, next_seq, cnt, stream=0):
        self.answers.take(self.channel, Request(stream, next_seq, cnt))

    def read_everything(self):
        """Let the peer read until nothing waits; return how often the channel had room again."""
        times = 0
        while self.channel.awaiting:
            times += 1
            self.channel.awaiting, self.channel.room_bytes = False, self.room_bytes
            self.answers.serve(self.channel)
        return times

    def events(self):
        return [each.first_seq for each in self.got if type(each) is Events]

    def ends(self):
        return [each for each in self.got if type(each) is Answered]


def store(batches, limit_bytes=1 << 30):
    """Return a store with batches of 100 events: 1 to 100, and so on."""
    received = Recv((0, 1), limit_bytes)
    for number in range(batches):
        payload = bytes(BATCH_BYTES)
        received.add(Events(0, 0, 0, 100 * number + 1, 100, 10, 0, 0, payload), 100 * number + 100)
    return received


@pytest.mark.parametrize(
    ("batches", "asked", "given", "end"),
    [
        pytest.param(10, (201, 500), [201, 301, 401], (500, 1000), id="the interval"),
        pytest.param(10, (250, 310), [201, 301], (310, 1000), id="whole batches"),
        pytest.param(100, (9_401, 9_700), [9_501, 9_601], (9_700, 10_000), id="less what was discarded"),
        pytest.param(100, (1, 300), [], (300, 10_000), id="nothing, if all of it was discarded"),
        pytest.param(3, (201, 900), [201], (300, 300), id="no more than there is"),
        pytest.param(3, (301, 900), [], (300, 300), id="nothing, if nothing has come yet"),
        pytest.param(0, (1, 10), [], (0, 0), id="nothing of an empty stream"),
    ],
)
def test_an_answer_has_the_requested_events(batches, asked, given, end):
    kept = 10 if batches == 10 else 5
    peer = Peer(store(batches, limit_bytes=kept * (BATCH_BYTES + 128)))
    peer.ask(*asked)
    assert peer.events() == given
    assert peer.ends() == [Answered(0, asked[0], *end)]


def test_a_huge_request_is_served_as_the_peer_reads():
    peer = Peer(store(5_000), room_bytes=10 * BATCH_BYTES)
    peer.ask(1, 500_000)
    assert len(peer.events()) == 10
    assert peer.ends() == []
    assert peer.read_everything() == 500
    assert peer.events() == list(range(1, 500_000, 100))
    assert peer.ends() == [Answered(0, 1, 500_000, 500_000)]
    assert peer.largest <= 11


def test_requests_are_answered_in_order():
    peer = Peer(store(100), room_bytes=10 * BATCH_BYTES)
    peer.ask(1, 3_000)
    peer.ask(5_001, 6_000)
    peer.ask(1, 100)
    peer.read_everything()
    assert peer.events() == [*range(1, 3_000, 100), *range(5_001, 6_000, 100), 1]
    assert [end.next for end in peer.ends()] == [1, 5_001, 1]


def test_answers_have_a_limit(monkeypatch):
    monkeypatch.setattr(answers, "ANSWER_LIMIT_BYTES", 20 * BATCH_BYTES)
    peer = Peer(store(100), room_bytes=10 * BATCH_BYTES)
    peer.ask(1, 10_000)
    peer.read_everything()
    assert peer.ends() == [Answered(0, 1, 2_000, 10_000)]


def test_a_peer_that_requests_without_reading_is_dropped():
    peer = Peer(store(100), room_bytes=BATCH_BYTES)
    for _ in range(answers.OPEN_REQUESTS):
        peer.ask(1, 10_000)
    assert peer.dropped == []
    peer.ask(1, 10_000)
    assert peer.dropped == ["requests more than it reads"]


@pytest.mark.parametrize("room_bytes", [BATCH_BYTES, 3 * BATCH_BYTES])
def test_a_departed_peer_gets_no_more_answers(room_bytes):
    peer = Peer(store(100), room_bytes)
    peer.ask(1, 10_000)
    given = len(peer.got)
    peer.answers.forget(peer.channel)
    peer.read_everything()
    assert len(peer.got) == given
