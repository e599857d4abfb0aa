"""The view of the real tshark, with Cutset's dissector, on a capture."""

import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from tests.analysis.capture.pcap.captures import ACK, PSH, SYN, at_intervals, segment, write_pcap

PORT = 7000
SYSTEM = "sprinkler"
MALFORMED = f"{SYSTEM}.malformed"


@dataclass
class Seen:
    """A message: its label, fields in order, rows, and expert lines."""

    frame: int
    reads: str = ""
    fields: dict[str, list[str]] = field(default_factory=dict)
    experts: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Tshark:
    """tshark with a dissector."""

    script: Path

    def run(self, capture: Path, *options: str) -> str:
        """Return the output; fail if it mentions Lua. A truncated file is read to its end."""
        command = ["tshark", "-n", "-X", f"lua_script:{self.script}", "-r", str(capture), *options]
        done = subprocess.run(command, check=False, capture_output=True, timeout=60)
        assert b"lua" not in done.stderr.lower(), done.stderr
        return done.stdout.decode(errors="replace")  # it cuts long labels within a character

    def messages(self, capture: Path, *options: str) -> list[Seen]:
        """Return the messages in a capture, in order, and other data sent to the port."""
        root = ElementTree.fromstring(self.run(capture, "-T", "pdml", "-J", SYSTEM, *options))
        return [
            _seen(number, proto)
            for number, packet in enumerate(root.iter("packet"), 1)
            for proto in packet.iter("proto")
            if proto.get("name") == SYSTEM
        ]

    def lines(self, capture: Path) -> list[str]:
        """Return the info column of the packets with messages."""
        shown = self.run(capture, "-Y", SYSTEM, "-T", "fields", "-e", "_ws.col.Info")
        return shown.splitlines()


def _seen(frame: int, proto: ElementTree.Element) -> Seen:
    seen = Seen(frame)
    for name, shown in _fields(proto):
        if name == f"{SYSTEM}.message":
            seen.reads = shown
        elif name == "_ws.expert.message":
            seen.experts.append(shown)
        else:
            seen.fields.setdefault(name.removeprefix(f"{SYSTEM}."), []).append(shown)
    return seen


def _fields(proto: ElementTree.Element) -> Iterator[tuple[str, str]]:
    for each in proto.iter("field"):
        name, shown = each.get("name", ""), each.get("show", "")
        if name.startswith((f"{SYSTEM}.", "_ws.expert.message")):
            yield name, shown


def connection(path: Path, parts: Sequence[tuple[int, bytes]], isn: int = 1000) -> Path:
    """Write a capture of a connection's start and of segments (stream offset, payload) to the port."""
    frames = [segment(isn, flags=SYN)]
    frames += [segment(isn + 1 + offset, payload, flags=ACK | PSH) for offset, payload in parts]
    return write_pcap(path, at_intervals(frames))


def in_pieces(data: bytes, size: int) -> list[tuple[int, bytes]]:
    """Cut the data into segments of this size."""
    return [(at, data[at : at + size]) for at in range(0, len(data), size)]
