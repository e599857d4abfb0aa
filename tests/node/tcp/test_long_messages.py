"""While a long message arrives in parts, its connection reports periodically that the peer is alive."""

import pytest

from node.core.framing import encode_header
from node.tcp import connection as module
from node.tcp.connection import PROGRESS_S, NodeConnection


class Codec:
    def decode(self, frame):
        return frame.type


class Owner:
    def __init__(self):
        self.heard = []

    def received(self, connection, messages):
        self.heard.append(list(messages))


@pytest.fixture
def now(monkeypatch):
    """Replace the clock by one that the test sets."""
    clock = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])
    return clock


def take(connection, data):
    connection.get_buffer(-1)[: len(data)] = data
    connection.buffer_updated(len(data))


def test_parts_are_reported_repeatedly_until_the_message_is_complete(now):
    owner = Owner()
    connection = NodeConnection(owner, Codec(), 1 << 20)
    data = encode_header(7, 1_000) + bytes(1_000)
    take(connection, data[:100])
    take(connection, data[100:200])
    assert owner.heard == []  # as with any message that comes in two pieces
    for number in range(1, 4):
        now[0] = 100.0 + number * 1.5 * PROGRESS_S
        take(connection, data[100 + number * 100 : 200 + number * 100])
        assert owner.heard == [[]] * number
    take(connection, data[500:])
    assert owner.heard == [[], [], [], [7]]
    now[0] += 1.0
    take(connection, data[:10])
    assert len(owner.heard) == 4  # the next one has only begun
