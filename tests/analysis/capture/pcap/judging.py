"""tshark as the reference for header fields: the innermost IP header and its ports, packet by packet."""

import subprocess
from pathlib import Path

from tests.analysis.capture.pcap.reading import Row, ours

FIELDS = (
    "frame.time_epoch", "frame.cap_len", "frame.len", "frame.protocols", "_ws.short", "_ws.malformed",
    "ip.src", "ip.dst", "ipv6.src", "ipv6.dst", "tcp.srcport", "tcp.dstport", "tcp.seq_raw", "tcp.len",
    "tcp.hdr_len", "udp.srcport", "udp.dstport",
)  # fmt: skip
PREFERENCES = ("ip.defragment:FALSE", "ipv6.defragment:FALSE", "tcp.desegment_tcp_streams:FALSE")
TCP_BYTES = 20
Judged = dict[str, list[str]]


def judged(path: Path) -> list[Judged]:
    """Return every field of every packet: one value per layer that has the field, outermost first."""
    options = [part for name in FIELDS for part in ("-e", name)]
    preferences = [part for each in PREFERENCES for part in ("-o", each)]
    command = ["tshark", "-n", "-r", str(path), *preferences, "-T", "fields", "-E", "occurrence=a", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # 2 for a damaged file
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    return [
        {name: value.split(",") if value else [] for name, value in zip(FIELDS, row, strict=True)}
        for row in rows
    ]


def innermost(found: Judged) -> Row:
    """Return the fields of the innermost IP header, and of TCP or UDP directly behind it."""
    time = found["frame.time_epoch"][0] if found["frame.time_epoch"] else "0"
    seconds, _, fraction = time.partition(".")
    digits = max(len(fraction) - len(fraction) % 3, 1)  # one more than these if a whole second is carried
    row: Row = {
        "t_ns": int(seconds) * 10**9 + int(fraction or 0) * 10**9 // 10**digits,
        "length": int(found["frame.cap_len"][0]),
        "wire_length": int(found["frame.len"][0]),
        "src": "", "dst": "", "sport": 0, "dport": 0, "seq": 0, "payload": 0,
    }  # fmt: skip
    protocols = found["frame.protocols"][0].split(":")
    read = [
        place
        for place, name in enumerate(protocols)
        if name in ("ip", "ipv6") and protocols[: place + 1].count(name) <= len(found[f"{name}.dst"])
    ]
    if not read:
        return row
    last = read[-1]
    row["src"], row["dst"] = (found[f"{protocols[last]}.{end}"][-1] for end in ("src", "dst"))
    behind = protocols[last + 1 :]
    for name in ("tcp", "udp"):
        if name in behind and found[f"{name}.srcport"]:
            row["sport"], row["dport"] = (int(found[f"{name}.{end}port"][-1]) for end in ("src", "dst"))
    if "tcp" in behind:
        row["seq"] = int((found["tcp.seq_raw"] or ["0"])[-1])
        bogus = int((found["tcp.hdr_len"] or ["20"])[-1]) < TCP_BYTES
        row["payload"] = 0 if bogus else int((found["tcp.len"] or ["0"])[-1])
    return row


def tsharks(path: Path) -> list[Row]:
    """Return the fields of all packets from tshark, without reassembly."""
    return [innermost(packet) for packet in judged(path)]


def differences(path: Path) -> tuple[int, list[tuple[int, Row, Row, str]]]:
    """Return the number of packets, and those for which Cutset and tshark disagree."""
    mine, theirs = ours(path)[1], judged(path)
    found = []
    if len(mine) != len(theirs):
        found.append((-1, {"length": len(mine)}, {"length": len(theirs)}, "number of packets"))
    for number, (row, packet) in enumerate(zip(mine, theirs, strict=False)):
        wanted = innermost(packet)
        if row != wanted and not is_documented(row, wanted, packet):
            found.append((number, row, wanted, ":".join(packet["frame.protocols"])))
    return len(mine), found


def is_documented(row: Row, wanted: Row, packet: Judged) -> bool:
    """Return whether a difference is on the list of docs/captures.md: headers that are cut off, and
    the payload of fragments.
    """
    if wanted["seq"] == 0 or not packet["tcp.len"]:
        wanted = wanted | {"payload": row["payload"]}
    if row["length"] == row["wire_length"] and not packet["_ws.malformed"]:
        return row == wanted
    same = all(row[name] == wanted[name] for name in ("t_ns", "length", "wire_length"))
    names = ("tcp.srcport", "udp.srcport", "tcp.dstport", "udp.dstport")
    ports = {"0", *(value for name in names for value in packet[name])}
    return (
        same
        and {str(row["sport"]), str(row["dport"])} <= ports
        and str(row["seq"]) in {"0", *packet["tcp.seq_raw"]}
    )
