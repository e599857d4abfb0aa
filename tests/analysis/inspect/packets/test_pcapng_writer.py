"""tshark and Cutset's reader read the written file with the same names, times and bytes."""

import subprocess

import numpy as np
import pytest

from analysis.capture.pcap.files.index import build_index
from analysis.capture.pcap.files.record_batches import read_columns, spans_of
from analysis.capture.time_range import TimeRange
from analysis.inspect.packets.pcapng_writer import PcapngWriter, comment_option
from tests.analysis.capture.pcap.captures import segment
from tests.analysis.capture.tls.speaking import certificate, spoken

T_NS = 1_700_000_000_123_456_789


SAID = ("r0/a -> r0/b", "", "ä", "abcd", "")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    path = tmp_path_factory.mktemp("written") / "two.pcapng"
    with path.open("wb") as stream:
        writer = PcapngWriter(stream, "a test", "time 0 is noon")
        writer.names({"10.0.0.1": "r0-proxy-0", "2001:db8::1": "r1-proxy-0"})
        first, second = writer.interface("r0-proxy-0-eth0", 1), writer.interface("r0-r1@r1", 113)
        for size, said in enumerate(SAID):  # all paddings
            comment = comment_option(said) if said else b""
            writer.packet(first, T_NS + size, segment(1000, b"x" * size), 54 + size, comment)
        cooked = bytes(14) + b"\x08\x00" + segment(2000, b"later")[14:]
        writer.packet(second, T_NS + 5, cooked, 100)  # snapped: more was on the wire
    return path


def tshark(path, *fields):
    options = [option for field in fields for option in ("-e", field)]
    command = ["tshark", "-N", "n", "-r", str(path), "-T", "fields", *options]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return [tuple(line.split("\t")) for line in lines]


def test_tshark_reads_interfaces_times_lengths_segments_names_and_comments(written):
    fields = ("frame.interface_name", "frame.time_epoch", "frame.cap_len", "frame.len", "tcp.seq_raw")
    found = tshark(written, *fields, "ip.src_host", "frame.comment")
    assert found[0][:5] == ("r0-proxy-0-eth0", "1700000000.123456789", "54", "54", "1000")
    assert [each[1] for each in found] == [f"1700000000.{123_456_789 + more}" for more in range(6)]
    assert [each[2] for each in found[:5]] == [str(54 + size) for size in range(5)]
    assert found[5][:5] == ("r0-r1@r1", "1700000000.123456794", "61", "100", "2000")
    assert {each[5] for each in found} == {"r0-proxy-0"}
    assert [each[6] for each in found] == [*SAID, ""]


def test_tshark_decrypts_by_the_keys_in_the_file(tmp_path):
    said = [(True, b"PUBLISH"), (False, b"PUBACK")]
    own, path = certificate(tmp_path), tmp_path / "keys.pcapng"
    with path.open("wb") as stream:
        writer = PcapngWriter(stream, "a test", "time 0 is noon")
        one = writer.interface("r0-broker-0-eth0", 1)
        for more in range(4):  # all paddings
            keys = tmp_path / f"{more}.keys"
            frames = spoken(said, own, keys).frames(("10.0.0.1", 40_000 + more))
            writer.tls_keys(keys.read_bytes() + b"#" * more)
            for number, frame in enumerate(frames):
                writer.packet(one, T_NS + number, frame, len(frame))
    plain = [each[0] for each in tshark(path, "data.data") if each[0]]
    assert [bytes.fromhex(each) for each in plain] == [b"PUBLISH", b"PUBACK"] * 4
    assert build_index(path).problem is None


def test_capinfos_finds_nanoseconds_and_who_wrote_it(written):
    said = subprocess.run(["capinfos", str(written)], check=True, capture_output=True, text=True).stdout
    assert "nanoseconds (9)" in said
    assert "Capture application: a test" in said
    assert "Capture comment:     time 0 is noon" in said
    assert "Number of interfaces in file: 2" in said


def test_our_own_reader_finds_the_same(written):
    index = build_index(written)
    assert (index.packets, index.problem, index.good_bytes) == (6, None, index.file_bytes)
    assert [each.link_type for each in index.sections[0].interfaces] == [1, 113]
    (span,) = spans_of(written, index, TimeRange())
    (columns,) = read_columns(span)
    assert columns["t_ns"].tolist() == list(range(T_NS, T_NS + 6))
    assert columns["seq"].tolist() == [1000] * 5 + [2000]
    assert columns["payload_length"].tolist() == [0, 1, 2, 3, 4, 5]
    data = np.fromfile(written, np.uint8)
    assert data[columns["offset"][4] + 54 :][:4].tobytes() == b"xxxx"
