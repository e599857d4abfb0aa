"""Matches of packet filters, and their errors for unknown names."""

from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pytest

from analysis.inspect.packets.filters import Filter, Query, codec_of, make_filter
from analysis.schemas import TRANSFERS
from node.core.declaration import Reading
from tests.analysis.timelines.world import CUT, ZERO, S, facts_of, run_record
from topologies.errors import InputError

TYPES = codec_of(run_record().plan).by_name


def row(**content):
    return dict.fromkeys(TRANSFERS.names) | {
        "t_ns": ZERO, "sender": "r2-proxy-0", "receiver": "r3-proxy-0", "src": "10.2.0.2", "sport": 7000,
        "dst": "10.3.0.2", "dport": 40_000, "connection": 0, "stream_offset": 0, "length": 100,
        "fate": "arrived", "type": "EVENTS", "retransmitted": False,
    } | content  # fmt: skip


def holds(wanted: Filter, **content) -> bool:
    rows = pa.RecordBatch.from_pylist([row(**content)], schema=TRANSFERS)
    (found,) = wanted.mask(rows.select(list(wanted.columns))).tolist()
    return found


def asked(**options) -> Filter:
    return make_filter(replace(Query(), **options), facts_of(), TYPES)


NONE = {"sender": None, "receiver": None}
MATCHES = {
    "nothing asked is everything": ({}, [{}, NONE], []),
    "a host is at either end": (
        {"hosts": ("r2-proxy-0",)},
        [{}, {"sender": "r0-proxy-0", "receiver": "r2-proxy-0"}],
        [{"sender": "r0-proxy-0"}, {"sender": None}],
    ),
    "a host is known by its process": ({"hosts": ("r2/proxy-0",)}, [{}], [{"sender": "r0-proxy-0"}]),
    "the same option widens and another narrows": (
        {"hosts": ("r2-proxy-0", "r0-proxy-0"), "regions": ("r3",)},
        [{}, {"sender": "r3-proxy-0", "receiver": "r0-proxy-0"}],
        [{"receiver": "r0-proxy-0"}, {"sender": "r3-proxy-0", "receiver": "r1-proxy-0"}],
    ),
    **{
        f"a link has both directions, named {name}": (
            {"links": (name,)},
            [{}, {"sender": "r3-client-0", "receiver": "r2-proxy-1"}],
            [{"receiver": "r2-proxy-1"}, {"receiver": "r1-proxy-0"}, {"sender": None}],
        )
        for name in ("r2-r3", "r3-r2")
    },
    "types are known in any case": (
        {"types": ("sparse-events", "Notify")},
        [{"type": "SPARSE_EVENTS"}, {"type": "NOTIFY"}],
        [{"type": "EVENTS"}],
    ),
    "a stream is the message's own or one that it lists": (
        {"streams": (2,)},
        [{"stream": 2}, {"advertised": [{"stream": 1, "cnt": 5}, {"stream": 2, "cnt": 0}]}],
        [{"stream": 1}, {"advertised": [{"stream": 1, "cnt": 5}]}, {"advertised": []}],
    ),
    "a message without sequence numbers has none of them": ({"seq": (0, 100)}, [], [{"type": "HELLO"}]),
    "lost ones left and never came": ({"lost": True}, [{"fate": "lost"}], [{"fate": "unseen"}]),
    "times begin with the first and end before the last": (
        {"from_s": Decimal("9.4"), "to_s": Decimal("9.6")},
        [{"t_ns": ZERO + 9_400_000_000}],
        [{"t_ns": ZERO + 9_600_000_000}, {"t_ns": ZERO + 9_399_999_999}],
    ),
    "around a fault is a second before and after": (
        {"around": "cut"},
        [{"t_ns": ZERO + CUT - S}, {"t_ns": ZERO + CUT + S - 1}],
        [{"t_ns": ZERO + CUT - S - 1}, {"t_ns": ZERO + CUT + S}],
    ),
    "around a fault is as long as asked": (
        {"around": "cut", "span_s": Decimal("0.25")},
        [{"t_ns": ZERO + CUT - S // 4}],
        [{"t_ns": ZERO + CUT - S // 4 - 1}, {"t_ns": ZERO + CUT + S // 4}],
    ),
}


@pytest.mark.parametrize(("options", "matching", "others"), MATCHES.values(), ids=MATCHES)
def test_a_filter_matches_the_requested_rows(options, matching, others):
    wanted = asked(**options)
    assert [content for content in matching if not holds(wanted, **content)] == []
    assert [content for content in others if holds(wanted, **content)] == []


@pytest.mark.parametrize("name", [2, "2", "s2", "r2"])
def test_a_stream_is_given_by_number_or_region(name):
    assert asked(streams=(name,)).streams == {2}


@pytest.mark.parametrize(
    ("content", "first", "last"),
    [
        ({"first_seq": 10, "count": 3, "covered": 11}, 10, 20),
        ({"first_seq": 10, "count": 3}, 10, 12),
        ({"first_seq": 10}, 10, 10),
        ({"next": 5, "cnt": 8}, 5, 8),
        ({"next": 5, "last": 7, "cnt": 90}, 5, 7),
        ({"cnt": 6}, 6, 6),
        ({"advertised": [{"stream": 0, "cnt": 1}, {"stream": 2, "cnt": 6}]}, 6, 6),
    ],
)
def test_filters_match_carried_and_named_sequence_numbers(content, first, last):
    content = {"stream": None if "advertised" in content else 2} | content
    for seq, expected in {first - 1: False, first: True, last: True, last + 1: False}.items():
        assert holds(asked(streams=(2,), seq=(seq, seq)), **content) == expected


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"hosts": ("r9",)}, "--host r9: no such host: known are r0-gw, r0-proxy-0, "),
        ({"regions": ("r9",)}, "--region r9: no such region: known are r0, r1, r2, r3"),
        ({"links": ("r2-r9",)}, "--link r2-r9: no such link between regions: known are r0-r1, r2-r3, "),
        ({"types": ("event",)}, "--type EVENT: no such type of message: known are HELLO, "),
        ({"streams": (7,)}, "--stream 7: no such stream: known are 0 (r0), 1 (r1), 2 (r2), 3 (r3)"),
        ({"around": "crash"}, "--around crash: no such fault: known are cut, restore"),
        ({"region_of": ("r2", 17)}, "--region-of r2/17: events of sprinkler affect no region of a space"),
        ({"topics": ("65a1fc",)}, "--topic 65a1fc: the messages of this run's system name no topics by keys"),
    ],
)
def test_an_unknown_name_is_refused_with_the_known_ones(options, said):
    with pytest.raises(InputError) as refused:
        asked(**options)
    assert str(refused.value).startswith(said)


def test_a_fault_that_never_took_effect_has_no_time():
    metadata = facts_of(changes=[])
    with pytest.raises(InputError, match="never took effect"):
        make_filter(Query(around="cut"), metadata, TYPES)


def key_of(stream: int) -> int:
    return (0x65A1FC00 + stream) << 96


def by_topic(**options) -> Filter:
    metadata = facts_of()
    keyed = replace(metadata, reading=replace(metadata.reading, key_of=key_of))
    return make_filter(replace(Query(), **options), keyed, TYPES)


def test_a_type_is_found_within_another_message_too():
    wanted = replace(asked(), types=frozenset({"OUTER"}))
    assert holds(wanted, type="OUTER")
    assert holds(wanted, type="INNER", within="FIRST OUTER")
    assert not holds(wanted, type="INNER", within="OUTERMOST")
    assert not holds(wanted, type="INNER")


@pytest.mark.parametrize("topic", ["65a1fc02", "65A1FC02", "s2", "2"])
def test_a_topic_is_given_by_digits_of_its_key_or_by_stream(topic):
    wanted = by_topic(topics=(topic,))
    assert holds(wanted, key=key_of(2).to_bytes(16, "big"))
    assert not holds(wanted, key=key_of(1).to_bytes(16, "big"))
    assert not holds(wanted, key=None, stream=2)


def test_messages_of_a_stream_are_also_those_that_only_name_its_topic():
    wanted = by_topic(streams=(2,))
    assert holds(wanted, stream=2)
    assert holds(wanted, key=key_of(2).to_bytes(16, "big"))
    assert not holds(wanted, key=key_of(1).to_bytes(16, "big"))
    assert not holds(wanted, key=key_of(2).to_bytes(16, "big"), stream=1)


def test_an_unknown_topic_is_refused_with_the_known_ones():
    with pytest.raises(InputError, match=r"no such topic: known are 65a1fc \("):
        by_topic(topics=("cafe",))


def test_all_streams_of_a_topic_lead_to_its_key():
    metadata = facts_of()
    two = replace(metadata, reading=replace(metadata.reading, key_of=key_of), topic_streams=2)
    for query in (Query(topics=("s3",)), Query(streams=("s3",))):
        wanted = make_filter(query, two, TYPES)
        assert holds(wanted, key=key_of(1).to_bytes(16, "big"))
        assert not holds(wanted, key=key_of(3).to_bytes(16, "big"))


def test_visits_selects_messages_to_the_region_of_an_event():
    of_a_space = replace(facts_of(), reading=Reading(visits=("EVENTS", "NOTIFY")))
    wanted = make_filter(Query(region_of=("r2", 17)), of_a_space, TYPES)
    visit = {"stream": 2, "first_seq": 17}
    assert holds(wanted, **visit)
    assert holds(wanted, type="NOTIFY", **visit)
    assert not holds(wanted, type="PUBLISH", **visit)
    assert not holds(wanted, stream=2, first_seq=18)
    assert not holds(wanted, stream=3, first_seq=17)
    only = make_filter(Query(region_of=("r2", 17), types=("notify",)), of_a_space, TYPES)
    assert not holds(only, **visit)
    assert holds(only, type="NOTIFY", **visit)
