"""Periodic messages of a protocol are recognized by their names."""

from analysis.messages import label as labels
from analysis.pages.diagram.ranks import HEARTBEAT, Ranks, ranks_of
from node.systems import codecs
from tests.analysis.messages.test_nested import CODEC

RANKS = ranks_of("sprinkler")
rank, what = RANKS.rank, RANKS.what


def test_every_ordinary_message_is_one_of_a_protocol() -> None:
    known = {name for codec in codecs().values() for name in codec.by_name}
    assert known >= set(RANKS.ordinary) - {HEARTBEAT}


def test_rare_messages_outrank_data_and_data_outranks_gossip() -> None:
    assert rank("SUBSCRIBE") == rank("a type of tomorrow") > rank("EVENTS") > rank("NOTIFY") > rank(HEARTBEAT)
    assert not set(RANKS.events) & set(RANKS.leaving_first)


def test_an_advertisement_without_counters_is_a_heartbeat() -> None:
    assert what({"type": "ADVERTISEMENT", "advertised": []}) == HEARTBEAT
    assert what({"type": "ADVERTISEMENT", "advertised": [{"stream": 0, "cnt": 3}]}) == "ADVERTISEMENT"


def test_a_label_calls_addresses_by_the_names_of_hosts(monkeypatch) -> None:
    monkeypatch.setattr(labels, "codec_of", lambda system: CODEC)
    named = Ranks("toys", (), (), "", {}, {"10.0.2.3": "r2-node-1"})
    row = {"type": "HELLO", "within": "DETOUR", "source": 0x0A000001, "target": 0x0A000203}
    assert named.label(row) == "DETOUR for r2-node-1: HELLO"
    assert Ranks("toys", (), (), "", {}).label(row) == "DETOUR for 10.0.2.3: HELLO"
