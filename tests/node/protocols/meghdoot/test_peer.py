"""A few lines let programs subscribe to ranges and publish values, in virtual time and over TCP."""

import asyncio
import os
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
from node.sim.flat_network import FlatNetwork
from node.tcp.peer import serve

HOSTS = f"127.{os.getpid() >> 8 & 127}.{os.getpid() & 255}."
README = Path(meghdoot.__file__).with_name("README.md")
QUOTES = (
    ContentAttribute("symbol", "string", of_word("a", 5), of_word("zzzzz", 5), length=5),
    ContentAttribute("price", "real", 0, 500),
    ContentAttribute("volume", "integer", 0, 1_000_000),
)


class Peers:
    """Peers in virtual time, which all know the first one."""

    def __init__(self, count=8):
        self.network = FlatNetwork(lambda a, b: 10_000)
        self.all = []
        for number in range(count):
            contacts = ["10.0.0.1"] if number else []
            peer = MeghdootPeer(
                f"peer {number}",
                f"10.0.0.{number + 1}",
                contacts,
                attributes=QUOTES,
                rng=Random(number),
            )
            self.network.start(peer.node.address, peer)
            self.all.append(peer)
            self.run(1)

    def run(self, seconds):
        self.network.run(self.network.clock.now_us + round(seconds * 1e6))


def test_events_come_to_whom_they_match_once_for_each_subscription():
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


def test_an_event_that_leaves_something_out_is_for_those_who_want_all_of_it():
    peers, got = Peers(4), []
    peers.all[2].subscribe(lambda event: got.append(("all", event.values)), price=(0, 10))
    peers.all[3].subscribe(lambda event: got.append(("some", event.values)), price=(0, 10), volume=(1, 2))
    peers.run(3)
    peers.all[1].publish({"price": 5})
    peers.run(3)
    assert got == [("all", {"price": 5.0})]


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"prize": 1}, "unknown attribute 'prize'; known ones: symbol, price, volume"),
        ({"price": (20, 10)}, "price: the range ends before it begins"),
        ({"price": 501}, "price: '501' is not from 0 to 500"),
        ({"volume": 1.5}, "volume: '1.5' is no integer"),
        ({"price": None}, "price: None is no number"),
        ({"price": True}, "price: True is no number"),
        ({"volume": [1, 2]}, "volume: [1, 2] is no integer"),
        ({"price": (1, 2, 3)}, "price: a range is (first, last), not (1, 2, 3)"),
    ],
)
def test_impossible_subscriptions_are_refused_with_a_reason(wanted, said):
    peer = MeghdootPeer("alice", "10.0.0.1", attributes=QUOTES, rng=Random(1))
    with pytest.raises(ValueError, match=re.escape(said)):
        peer.subscribe(print, **wanted)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"symbol": None}, "symbol: None is no word"),
        ({"price": (1, 2)}, "price: (1, 2) is no number"),
        ({"price": float("nan")}, "price: 'nan' is not from 0 to 500"),
    ],
)
def test_invalid_values_cannot_be_published(values, said):
    peer = MeghdootPeer("alice", "10.0.0.1", attributes=QUOTES, rng=Random(1))
    with pytest.raises(ValueError, match=re.escape(said)):
        peer.publish(values)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"delivry": "best-effort"}, "unknown parameter 'delivry'; known ones: "),
        ({"attributes": (*QUOTES, QUOTES[1])}, "duplicate attribute 'price'"),
    ],
)
def test_a_peer_is_not_made_of_what_makes_no_sense(given, said):
    with pytest.raises(ValueError, match=said):
        MeghdootPeer("alice", "10.0.0.1", **{"attributes": QUOTES, "rng": Random(1)} | given)


def test_content_that_fits_into_no_frame_is_refused_at_once_and_the_longest_comes():
    peers, got = Peers(3), []
    peers.all[2].subscribe(lambda event: got.append(len(event.content)), price=(10, 20))
    peers.run(3)
    most = FRAME_LIMIT_BYTES - ENVELOPE_BYTES - 8 * len(QUOTES)
    with pytest.raises(ValueError, match=f"content of {most + 1:,} bytes is over the limit of {most:,}"):
        peers.all[1].publish({"price": 12}, bytes(most + 1))
    peers.all[1].publish({"price": 12}, bytes(most))
    peers.run(3)
    assert got == [most]


def test_the_longest_content_fits_into_a_frame_in_all_that_may_be_around_it():
    payload = bytes(FRAME_LIMIT_BYTES - ENVELOPE_BYTES)
    for message in (Publish(1, 2, 3, 4, 5, 6, payload), Event(1, 2, 3, 4, 5, 6, 7, payload)):
        around = Relay(1, 2, 3, 4, 5, 6, 7, Route(1, 2, message))
        assert CODEC.size_bytes(around) <= FRAME_LIMIT_BYTES


def test_the_readme_s_lines_do_what_they_say(capsys):
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
