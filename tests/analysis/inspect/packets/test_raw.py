"""The bytes of messages, from whichever capture kept them."""

import pytest

from analysis.inspect.packets.filters import Filter
from analysis.inspect.packets.raw import MessageByteReader
from analysis.inspect.packets.transfer_reader import transfers
from node.protocols.sprinkler.messages import CODEC
from tests.analysis.capture.pcap.captures import snapped
from tests.analysis.inspect.packets.small_run import PROXY_2, PROXY_3, around_the_cut, events
from tests.analysis.timelines.world import CUT, ZERO

SNAPLEN = 54 + 60  # headers and the head of a batch


def snapped_run(path, first_ns, end_ns):
    """Return a run whose r2-proxy-0 truncated the packets of some period."""
    run = around_the_cut()
    capture = f"{PROXY_2}-eth0"
    run.records[capture] = [
        snapped(record, SNAPLEN) if first_ns <= record.t_ns - ZERO < end_ns else record
        for record in run.records[capture]
    ]
    return run.write(path / "a-run")


def batches_of(run):
    """By the first sequence number."""
    tables = transfers(run, Filter(types=frozenset({"EVENTS"})))
    rows = [row for table in tables for row in table.to_pylist()]
    return dict(
        zip([row["first_seq"] for row in rows], MessageByteReader(run).read_messages(rows), strict=True)
    )


def encoded(message):
    return b"".join(CODEC.encode(message))


def test_a_message_is_read_from_its_senders_capture(small_run):
    raw = batches_of(small_run)[1]
    assert (raw.capture, raw.packets) == (f"{PROXY_2}-eth0", 2)
    assert raw.content.data == encoded(events(1))
    assert all(raw.content.known)


@pytest.mark.slow
def test_bytes_missing_at_the_sender_come_from_the_receiver(tmp_path):
    raw = batches_of(snapped_run(tmp_path, 0, CUT))[1]
    assert raw.capture == f"{PROXY_3}-eth0"
    assert raw.content.data == encoded(events(1))


def test_bytes_missing_at_both_ends_are_unknown(tmp_path):
    raw = batches_of(snapped_run(tmp_path, CUT, 2 * CUT))[11]
    assert raw.capture == f"{PROXY_2}-eth0"
    whole = encoded(events(11))
    assert bytes(raw.content.known) == b"\1" * 60 + b"\0" * 20 + b"\1" * 60 + b"\0" * 6
    assert raw.content.data[80:140] == whole[80:140]
