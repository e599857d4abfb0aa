"""Cutset's and tshark's reading of a capture, side by side."""

import subprocess
from pathlib import Path

from analysis.capture.pcap.files.compressed import unpack
from analysis.capture.pcap.files.index import CaptureIndex, load_index
from analysis.capture.pcap.files.record_batches import read_columns, spans_of
from analysis.capture.pcap.streams import format_address
from analysis.capture.time_range import TimeRange

Row = dict[str, int | str]

_TSHARK = (
    "frame.time_epoch", "frame.cap_len", "frame.len", "ip.src", "ipv6.src", "ip.dst", "ipv6.dst",
    "tcp.srcport", "udp.srcport", "tcp.dstport", "udp.dstport", "tcp.seq_raw", "tcp.len",
)  # fmt: skip


def ours(path: Path) -> tuple[CaptureIndex, list[Row]]:
    """Return the index of a capture of any kind, and its packets' fields from Cutset's reader."""
    path = unpack(path)
    index = load_index(path)
    rows = []
    for span in spans_of(path, index, TimeRange()):
        for columns in read_columns(span):
            names = ("t_ns", "length", "wire_length", "sport", "dport", "seq")
            for row in range(columns["t_ns"].size):
                one: Row = {name: int(columns[name][row]) for name in names}
                for side in ("src", "dst"):
                    halves = [int(columns[f"{side}_{half}"][row]) for half in ("hi", "lo")]
                    one[side] = format_address(*halves) if any(halves) else ""
                one["payload"] = int(columns["payload_length"][row]) if columns["proto"][row] == 6 else 0
                rows.append(one)
    return index, rows


def tsharks(path: Path) -> list[Row]:
    """Return the same fields from tshark, without reassembly."""
    options = [part for name in _TSHARK for part in ("-e", name)]
    plainly = [
        "-o",
        "ip.defragment:FALSE",
        "-o",
        "ipv6.defragment:FALSE",
        "-o",
        "tcp.desegment_tcp_streams:FALSE",
    ]
    command = ["tshark", "-n", "-r", str(path), *plainly, "-T", "fields", "-E", "occurrence=l", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # 2 for a damaged file
    return [_row(*line.split("\t")) for line in done.stdout.splitlines()]


def _row(*values: str) -> Row:
    time, length, wire_length, *addresses, sport, usport, dport, udport, seq, payload = values
    seconds, _, fraction = (time or "0").partition(".")
    return {
        "t_ns": int(seconds) * 10**9 + int(fraction.ljust(9, "0")),
        "length": int(length),
        "wire_length": int(wire_length),
        "src": addresses[0] or addresses[1],
        "dst": addresses[2] or addresses[3],
        "sport": int(sport or usport or 0),
        "dport": int(dport or udport or 0),
        "seq": int(seq or 0),
        "payload": int(payload or 0),
    }
