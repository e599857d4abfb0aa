"""Which packets carry which messages: vectorised results equal a plain loop."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from analysis.capture.pcap.fields import DIRECTION
from analysis.capture.pcap.streams import halves
from analysis.inspect.packets.wire import ConnectionSyns, Ranges, RowKeys, key_of
from analysis.schemas import PACKETS

DIRECTIONS = [(0, 1, 7000, 0, 2, 40_000), (0, 2, 40_000, 0, 1, 7000), (-5, 1, 7000, 0, 2, 40_000)]
EDGE = 2**32
seqs = st.one_of(st.integers(0, 300), st.integers(EDGE - 300, EDGE - 1))
spans = st.tuples(st.sampled_from(DIRECTIONS), seqs, st.integers(1, 400))


def columns(packets):
    found = {
        name: np.array([packet[0][place] for packet in packets], np.int64)
        for place, name in enumerate(DIRECTION)
    }
    found["seq"] = np.array([seq for _, seq, _ in packets], np.int64)
    found["payload_length"] = np.array([length for _, _, length in packets], np.int64)
    return found


def bytes_of(span):
    direction, seq, length = span
    return {(direction, (seq + offset) % EDGE) for offset in range(length)}


@given(st.lists(spans, max_size=8), st.lists(spans, min_size=1, max_size=8))
def test_a_packet_carries_a_message_if_they_share_a_byte_also_where_numbers_wrap(messages, packets):
    wanted = set().union(*map(bytes_of, messages))
    expected = [bool(bytes_of(packet) & wanted) for packet in packets]
    assert Ranges(messages).carried_by(columns(packets)).tolist() == expected


def test_a_packet_without_payload_carries_nothing():
    assert Ranges([(DIRECTIONS[0], 10, 20)]).carried_by(columns([(DIRECTIONS[0], 15, 0)])).tolist() == [False]


small = st.tuples(st.integers(-3, 3), st.integers(0, 3))


@given(st.lists(small, max_size=6), st.lists(small, min_size=1, max_size=12))
def test_row_keys_find_exactly_the_given_keys(keys, rows):
    found = RowKeys(keys)
    places = found.find([np.array(column, np.int64) for column in zip(*rows, strict=True)])
    assert [found.keys[place] if place >= 0 else None for place in places] == [
        row if row in keys else None for row in rows
    ]


def opened(*syns):
    rows = [
        dict.fromkeys(PACKETS.names, 0)
        | dict(zip(DIRECTION, (*halves("10.0.0.1"), 40_000, *halves("10.0.0.2"), 7000), strict=True))
        | {"capture": "a", "t_ns": t_ns, "seq": seq}
        for t_ns, seq in syns
    ]
    return ConnectionSyns(rows)


MESSAGE = {
    "t_ns": 100, "src": "10.0.0.1", "sport": 40_000, "dst": "10.0.0.2", "dport": 7000, "stream_offset": 30,
}  # fmt: skip


def test_the_first_byte_has_the_number_after_the_syn():
    assert opened((50, 1000)).first_byte(MESSAGE) == 1031


def test_numbers_wrap():
    assert opened((50, EDGE - 11)).first_byte(MESSAGE) == 20


def test_the_latest_earlier_connection_with_the_same_ports_counts():
    assert opened((50, 1000), (101, 9000), (70, 5000)).first_byte(MESSAGE) == 5031


def test_without_an_earlier_syn_the_connection_is_unknown():
    assert opened((101, 1000)).first_byte(MESSAGE) is None
    assert opened((50, 1000)).first_byte(MESSAGE | {"sport": 1}) is None


def test_addresses_are_halved_as_in_the_table_of_packets():
    assert halves("10.0.0.1") == (0, 0x0A000001)
    assert halves("ff00::8000:0:0:1") == (-(2**56), -(2**63) + 1)


def test_a_packets_direction_has_the_columns_in_the_order_of_their_names():
    assert key_of(dict(zip(DIRECTION, range(6), strict=True))) == (0, 1, 2, 3, 4, 5)
