"""What a protocol sends all the time is known by the names of its messages."""

from analysis.inspect.diagram.ranks import HEARTBEAT, ranks_of
from node.systems import codecs

RANKS = ranks_of("sprinkler")
rank, what = RANKS.rank, RANKS.what


def test_every_ordinary_message_is_one_of_a_protocol() -> None:
    known = {name for codec in codecs().values() for name in codec.by_name}
    assert known >= set(RANKS.ordinary) - {HEARTBEAT}


def test_what_is_seldom_outranks_data_and_data_outranks_gossip() -> None:
    assert rank("SUBSCRIBE") == rank("a type of tomorrow") > rank("EVENTS") > rank("NOTIFY") > rank(HEARTBEAT)
    assert not set(RANKS.events) & set(RANKS.leaving_first)


def test_an_advertisement_without_counters_is_a_heartbeat() -> None:
    assert what({"type": "ADVERTISEMENT", "advertised": []}) == HEARTBEAT
    assert what({"type": "ADVERTISEMENT", "advertised": [{"stream": 0, "cnt": 3}]}) == "ADVERTISEMENT"
