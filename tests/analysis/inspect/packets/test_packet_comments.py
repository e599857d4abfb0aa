"""A packet's comment names both processes; a host without a process has its name or address."""

import pytest

from analysis.inspect.packets.packet_comments import PacketComments
from analysis.inspect.packets.wire import direction_of
from analysis.timelines.run_metadata import Host, RunMetadata

NOBODY, BROKER, GATEWAY = "192.0.2.7", "10.0.0.2", "10.0.0.1"
HOSTS = {
    "r0-broker-0": Host("r0-broker-0", "r0", "broker", BROKER),
    "r0-gw": Host("r0-gw", "r0", "gateway", GATEWAY),
}


@pytest.mark.parametrize(
    ("src", "sport", "dst", "dport", "said"),
    [
        (BROKER, 4500, GATEWAY, 0, "r0/broker-0 port 4500 -> r0-gw"),
        (NOBODY, 53, BROKER, 4500, "192.0.2.7 port 53 -> r0/broker-0 port 4500"),
        (GATEWAY, 0, BROKER, 0, "r0-gw -> r0/broker-0"),
        (NOBODY, 1, NOBODY, 2, ""),
    ],
)
def test_both_ends_are_named(src, sport, dst, dport, said):
    metadata = RunMetadata(
        *("run", "experiment", 1, None, 0, None, None, None, None, None),
        hosts=HOSTS,
        host_of={"r0/broker-0": "r0-broker-0"},
    )
    comments = PacketComments(metadata)
    direction = direction_of({"src": src, "sport": sport, "dst": dst, "dport": dport})
    assert comments.text(direction) == said
    assert bool(comments.options_of(direction)) == bool(said)
