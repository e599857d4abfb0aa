"""The interface for applications: subscribe to ranges and publish values, in virtual time and over TCP."""

import asyncio
import re
from pathlib import Path
from random import Random

import pytest

from node.core.content.content import ContentAttribute
from node.core.framing import ENVELOPE_BYTES, FRAME_LIMIT_BYTES
from node.core.ordinals import of_word
from node.protocols import meghdoot
from node.protocols.can.messages import Route
from node.protocols.meghdoot.messages import CODEC, Event, Publish
from node.protocols.meghdoot.peer import MeghdootPeer
from node.protocols.reachability.messages import Relay
from node.tcp.peer import serve
from tests.node.protocols.peers import HOSTS, VirtualPeers

README = Path(meghdoot.__file__).with_name("README.md")
QUOTES = (
    ContentAttribute("symbol", "string", of_word("a", 5), of_word("zzzzz", 5), length=5),
    ContentAttribute("price", "real", 0, 500),
    ContentAttribute("volume", "integer", 0, 1_000_000),
)


class Peers(VirtualPeers):
    def __init__(self, count=8):
        super().__init__(MeghdootPeer, count, 1, attributes=QUOTES)


def test_events_arrive_once_for_each_matching_subscription():
    peers, got = Peers(), []
    peers.all[3].subscribe(lambda event: got.append((3, event.content)), symbol="aapl", price=(10, 20))
    peers.all[5].subscribe(lambda event: got.append((5, event.content)), volume=(5_000, None))
    peers.all[5].subscribe(lambda event: got.append((5, event.content)), price=(None, 100.0))
    peers.run(3)
    peers.all[0].publish({"symbol": "aapl", "price": 12.5, "volume": 10}, b"one")
    peers.all[1].publish({"symbol": "ibm", "price": 12.5, "volume": 6_000}, b"two")
    peers.all[5].publish({"symbol": "ibm", "price": 300, "volume": 4_999}, b"three")
    peers.run(3)
    assert sorted(got) == [(3, b"one"), (5, b"one"), (5, b"two"), (5, b"two")]


def test_an_unsubscribed_peer_gets_no_more_events_and_subscriptions_are_confirmed():
    peers, got, confirmed = Peers(4), [], []
    subscriber = peers.all[2]
    subscriber.confirmed = confirmed.append
    number = subscriber.subscribe(got.append, price=(0, 500))
    peers.run(3)
    assert confirmed == [number]
    peers.all[1].publish({"symbol": "b", "price": 1, "volume": 1})
    peers.run(3)
    subscriber.unsubscribe(number)
    peers.run(3)
    peers.all[1].publish({"symbol": "b", "price": 2, "volume": 1})
    peers.run(3)
    [event] = got
    assert event.values == {"symbol": "b", "price": 1.0, "volume": 1.0}


def test_an_event_with_an_unspecified_value_matches_only_the_whole_range():
    peers, got = Peers(4), []
    peers.all[2].subscribe(lambda event: got.append(("all", event.values)), price=(0, 10))
    peers.all[3].subscribe(lambda event: got.append(("some", event.values)), price=(0, 10), volume=(1, 2))
    peers.run(3)
    peers.all[1].publish({"price": 5})
    peers.run(3)
    assert got == [("all", {"price": 5.0})]


@pytest.mark.parametrize(
    ("action", "values", "said"),
    [
        ("subscribe", {"prize": 1}, "unknown attribute 'prize'; known ones: symbol, price, volume"),
        ("subscribe", {"price": (20, 10)}, "price: the range ends before it begins"),
        ("subscribe", {"price": 501}, "price: '501' is not from 0 to 500"),
        ("subscribe", {"volume": 1.5}, "volume: '1.5' is not an integer"),
        ("subscribe", {"price": True}, "price: True is not a number"),
        ("subscribe", {"price": (1, 2, 3)}, "price: a range is (first, last), not (1, 2, 3)"),
        ("publish", {"symbol": None}, "symbol: None is not a word"),
        ("publish", {"price": (1, 2)}, "price: (1, 2) is not a number"),
        ("publish", {"price": float("nan")}, "price: 'nan' is not from 0 to 500"),
        ("create", {"delivry": "best-effort"}, "unknown parameter 'delivry'; known ones: "),
        ("create", {"attributes": (*QUOTES, QUOTES[1])}, "duplicate attribute 'price'"),
    ],
)
def test_invalid_requests_are_refused_with_a_reason(action, values, said):
    peer = MeghdootPeer("alice", "10.0.0.1", attributes=QUOTES, rng=Random(1))
    call = {
        "create": lambda: MeghdootPeer(
            "bob", "10.0.0.2", **{"attributes": QUOTES, "rng": Random(1)} | values
        ),
        "subscribe": lambda: peer.subscribe(print, **values),
        "publish": lambda: peer.publish(values),
    }[action]
    with pytest.raises(ValueError, match=re.escape(said)):
        call()


def test_too_long_content_is_refused_and_the_longest_is_delivered():
    peers, got = Peers(3), []
    peers.all[2].subscribe(lambda event: got.append(len(event.content)), price=(10, 20))
    peers.run(3)
    most = FRAME_LIMIT_BYTES - ENVELOPE_BYTES - 8 * len(QUOTES)
    with pytest.raises(ValueError, match=f"content of {most + 1:,} bytes is over the limit of {most:,}"):
        peers.all[1].publish({"price": 12}, bytes(most + 1))
    peers.all[1].publish({"price": 12}, bytes(most))
    peers.run(3)
    assert got == [most]


def test_the_longest_content_fits_into_a_frame_with_all_envelopes():
    payload = bytes(FRAME_LIMIT_BYTES - ENVELOPE_BYTES)
    for message in (Publish(1, 2, 3, 4, 5, 6, payload), Event(1, 2, 3, 4, 5, 6, 7, payload)):
        around = Relay(1, 2, 3, 4, 5, 6, 7, Route(1, 2, message))
        assert CODEC.size_bytes(around) <= FRAME_LIMIT_BYTES


def test_the_readmes_examples_work(capsys):
    [code] = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    exec(compile(code, str(README), "exec"), {})
    assert capsys.readouterr().out == "12.5 b'hello'\n"


def test_over_tcp():
    async def take_part():
        done, standing, got = asyncio.Event(), asyncio.Event(), []
        first = f"{HOSTS}1"
        alice = MeghdootPeer("alice", first, attributes=QUOTES, rng=Random(1))
        bob = MeghdootPeer("bob", f"{HOSTS}2", [first], attributes=QUOTES, rng=Random(2))
        bob.confirmed = lambda number: standing.set()
        async with asyncio.timeout(30), serve(alice, CODEC, first), serve(bob, CODEC, f"{HOSTS}2"):
            bob.subscribe(lambda event: (got.append(event), done.set()), symbol="ibm")
            await standing.wait()
            alice.publish({"symbol": "ibm", "price": 50, "volume": 7}, b"hello")
            await done.wait()
        return got

    [event] = asyncio.run(take_part())
    assert event.content == b"hello"
    assert event.values == {"symbol": "ibm", "price": 50.0, "volume": 7.0}
