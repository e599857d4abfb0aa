"""The bytes of messages, from the captures of sender and receiver."""

import pytest

from analysis.inspect.packets.filters import Filter
from analysis.inspect.packets.raw import MessageByteReader
from analysis.inspect.packets.transfer_reader import transfers
from node.protocols.sprinkler.messages import CODEC
from tests.analysis.capture.pcap.captures import snapped
from tests.analysis.inspect.packets.small_run import DRIVER, PROXY_2, PUBLISH, around_the_cut, events
from tests.analysis.timelines.world import CUT, ZERO

SNAPLEN = 54 + 60  # headers and the head of a batch


@pytest.fixture(scope="module")
def snapped_run(tmp_path_factory):
    """Return a run whose r2-driver-0 truncated all its packets, and r2-proxy-0 those after the cut."""
    run = around_the_cut()
    for host, from_ns in ((DRIVER, ZERO), (PROXY_2, ZERO + CUT)):
        run.records[f"{host}-eth0"] = [
            snapped(record, SNAPLEN) if record.t_ns >= from_ns else record
            for record in run.records[f"{host}-eth0"]
        ]
    return run.write(tmp_path_factory.mktemp("runs") / "a-run")


def bytes_of(run, type_):
    """Return the bytes of messages of a type, in order of time."""
    tables = transfers(run, Filter(types=frozenset({type_})))
    rows = [row for table in tables for row in table.to_pylist()]
    return MessageByteReader(run).read_messages(rows)


def encoded(message):
    return b"".join(CODEC.encode(message))


def test_a_message_is_read_from_its_senders_capture(small_run):
    raw = bytes_of(small_run, "EVENTS")[0]
    assert (raw.capture, raw.packets) == (f"{PROXY_2}-eth0", 2)
    assert raw.content.data == encoded(events(1))
    assert all(raw.content.known)


def test_bytes_missing_at_the_sender_come_from_the_receiver(snapped_run):
    [raw] = bytes_of(snapped_run, "PUBLISH")
    assert raw.capture == f"{PROXY_2}-eth0"
    assert raw.content.data == encoded(PUBLISH)


def test_bytes_missing_at_both_ends_are_unknown(snapped_run):
    raw = bytes_of(snapped_run, "EVENTS")[1]
    assert raw.capture == f"{PROXY_2}-eth0"
    whole = encoded(events(11))
    assert bytes(raw.content.known) == b"\1" * 60 + b"\0" * 20 + b"\1" * 60 + b"\0" * 6
    assert raw.content.data[80:140] == whole[80:140]
