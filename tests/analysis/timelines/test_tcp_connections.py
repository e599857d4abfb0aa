"""TCP connections between regions, read from packets of both ends' captures."""

import pyarrow as pa
import pytest

from analysis.capture.pcap.reassemble import ACK, FIN, RST, SYN
from analysis.timelines.tcp_connections import PACKET_COLUMNS, CapturedHost, tcp_connections

A, B, C = 1, 2, 3
HOSTS = {
    A: CapturedHost("a", "r0", "a-eth0"),
    B: CapturedHost("b", "r1", "b-eth0"),
    C: CapturedHost("c", "r0", "c-eth0"),
}
MS = 1_000_000
DATA = 16


class Wire:
    """Packets as both hosts' captures see them, 10 ms apart unless lost."""

    def __init__(self):
        self.rows = []

    def packet(self, at_ms, source, target, sport, dport, *, flags=DATA, seq=0, length=0, is_lost=False):
        row = {
            "src_lo": source, "dst_lo": target, "sport": sport, "dport": dport, "proto": 6,
            "seq": seq, "flags": flags, "payload_length": length,
        }  # fmt: skip
        self.rows.append({"capture": HOSTS[source].capture, "t_ns": at_ms * MS, **row})
        if not is_lost:
            self.rows.append({"capture": HOSTS[target].capture, "t_ns": (at_ms + 10) * MS, **row})

    def handshake(self, at_ms, sport=40_000, seq=100):
        self.packet(at_ms, A, B, sport, 80, flags=SYN, seq=seq)
        self.packet(at_ms + 10, B, A, 80, sport, flags=SYN | ACK, seq=900)

    def connections(self):
        table = pa.Table.from_pylist(self.rows)
        return tcp_connections(table.select(list(PACKET_COLUMNS)), HOSTS)


def test_a_connection_has_who_opened_it_and_who_ended_it_how():
    wire = Wire()
    wire.handshake(0)
    wire.packet(50, A, B, 40_000, 80, seq=101, length=10)
    wire.packet(100, B, A, 80, 40_000, flags=FIN | ACK, seq=901)
    wire.packet(120, A, B, 40_000, 80, flags=RST, seq=111)
    (found,) = wire.connections()
    assert (found.client, found.server, found.port) == ("a", "b", 80)
    assert found.tries_ns == (0,)
    assert found.answered_ns == 20 * MS
    assert (found.ending.t_ns, found.ending.host, found.ending.how) == (100 * MS, "b", "FIN")
    assert [found.stands_at(t * MS) for t in (10, 30, 101)] == [False, True, False]
    assert found.first_arrival_ns(0) == 60 * MS
    assert found.first_arrival_ns(61 * MS) is None


def test_a_retransmission_is_no_progress_and_an_arrival_is():
    wire = Wire()
    wire.handshake(0)
    for at_ms in (100, 300, 700, 1500):
        wire.packet(at_ms, A, B, 40_000, 80, seq=101, length=10, is_lost=at_ms < 1500)
    wire.packet(1600, A, B, 40_000, 80, seq=111, length=5)
    (found,) = wire.connections()
    assert found.repeats_ns(0, 2_000 * MS).tolist() == [300 * MS, 700 * MS, 1500 * MS]
    assert found.first_arrival_ns(0) == 1510 * MS


def test_restarted_sequence_numbers_are_no_repetition():
    wire = Wire()
    wire.handshake(0, seq=(1 << 32) - 16)
    for number in range(4):
        seq = ((1 << 32) - 15 + 10 * number) % (1 << 32)
        wire.packet(100 + number, A, B, 40_000, 80, seq=seq, length=10)
    (found,) = wire.connections()
    assert found.repeats_ns(0, 1_000 * MS).tolist() == []


def test_a_pair_of_ports_that_is_used_again_is_another_connection():
    wire = Wire()
    wire.handshake(0)
    wire.packet(100, A, B, 40_000, 80, flags=RST, seq=101)
    wire.packet(200, A, B, 40_000, 80, flags=SYN, seq=5_000, is_lost=True)
    wire.packet(1_200, A, B, 40_000, 80, flags=SYN, seq=5_000, is_lost=True)
    first, second = wire.connections()
    assert first.answered_ns == 20 * MS
    assert (second.tries_ns, second.answered_ns) == ((200 * MS, 1_200 * MS), None)


def test_in_a_connection_older_than_the_captures_the_lower_port_is_the_servers():
    wire = Wire()
    wire.packet(10, B, A, 80, 40_000, seq=7, length=10)
    (found,) = wire.connections()
    assert (found.client, found.server, found.port, found.tries_ns) == ("a", "b", 80, ())
    assert found.stands_at(0)


@pytest.mark.parametrize("peer", [C, B])
def test_only_connections_between_regions_count(peer):
    wire = Wire()
    wire.packet(0, A, peer, 40_000, 80, flags=SYN, seq=1)
    assert len(wire.connections()) == (peer == B)


def test_without_packets_there_is_none():
    wire = Wire()
    wire.packet(0, A, C, 40_000, 80)
    assert wire.connections() == []
