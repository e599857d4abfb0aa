"""A small run around a cut, written packet by packet, and analysed.

The link r2-r3 is cut at 5 s. Shortly before, r2-proxy-0 sent r3-proxy-0 a batch that arrived; just after, one
that did not, though it was sent again. A driver's PUBLISH came twice. All delays are 17 ms between the
regions r2 and r3, and 2 ms within a region.
"""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

from analysis.pipeline import analyze_here
from experiments.records.rundir import RunDirectory
from node.protocols.sprinkler.messages import (
    CODEC,
    Advertisement,
    Counter,
    Events,
    Hello,
    Publish,
    Published,
    Subscribe,
)
from tests.analysis.capture.pcap.captures import SYN, Record, segment, write_pcap
from tests.analysis.timelines.world import MS, ZERO, payload, run_json

PORT = 7000
ISN = 2**32 - 5  # so that sequence numbers wrap within the first message
LAN_MS, LINK_MS = 2, 17
PROXY_2, PROXY_3, DRIVER, CLIENT = "r2-proxy-0", "r3-proxy-0", "r2-driver-0", "r3-client-0"


class Conversation:
    """One TCP direction: its bytes, and the captures that see them."""

    def __init__(self, run: "SmallRun", sender: str, receiver: str, sport: int, dport: int) -> None:
        self.run, self.sender, self.receiver = run, sender, receiver
        self.ends = [(run.addresses[sender], sport), (run.addresses[receiver], dport)]
        self.links = run.between(sender, receiver)
        self.sent = 0

    def open(self, at_ms: float) -> None:
        """Send the SYN."""
        self._see(segment(ISN, src=self.ends[0], dst=self.ends[1], flags=SYN), at_ms, lost=False)

    def send(self, at_ms: float, *messages: Any, cut: tuple[int, ...] = (), lost: bool = False) -> int:
        """Send messages in one segment, or cut at these bytes; returns where they begin in the stream."""
        content = b"".join(b"".join(CODEC.encode(message)) for message in messages)
        begin = self.sent
        for first, last in zip((0, *cut), (*cut, len(content)), strict=True):
            self.resend(at_ms, begin + first, content[first:last], lost=lost)
        self.sent = begin + len(content)
        return begin

    def resend(self, at_ms: float, offset: int, content: bytes, *, lost: bool = False) -> None:
        """Send bytes in a segment of their own."""
        frame = segment(ISN + 1 + offset, content, src=self.ends[0], dst=self.ends[1])
        self._see(frame, at_ms, lost=lost)

    def _see(self, frame: bytes, at_ms: float, *, lost: bool) -> None:
        """Add the frame to the captures of the sender, both sides of the link if any, and the receiver."""
        took_ms = LINK_MS if self.links else LAN_MS
        near, far = self.links or ("", "")
        seen = [(f"{self.sender}-eth0", at_ms), (near, at_ms + 1)]
        if not lost:
            seen += [(far, at_ms + took_ms - 1), (f"{self.receiver}-eth0", at_ms + took_ms)]
        for capture, t_ms in (each for each in seen if each[0]):
            self.run.records[capture].append(Record(ZERO + round(t_ms * MS), frame))


class SmallRun:
    """Collects packets by capture."""

    def __init__(self) -> None:
        self.content = run_json()
        plan = self.content["plan"]
        self.addresses = {host["name"]: host["address"] for host in plan["hosts"]}
        self.regions = {host["name"]: host["region"] for host in plan["hosts"]}
        self.names = {frozenset((link["a"], link["b"])): link["name"] for link in plan["links"]}
        self.records: dict[str, list[Record]] = defaultdict(list)

    def between(self, sender: str, receiver: str) -> tuple[str, ...]:
        """Return the captures on both sides of the link between two hosts' regions."""
        here, there = self.regions[sender], self.regions[receiver]
        if here == there:
            return ()
        name = self.names[frozenset((here, there))]
        return f"{name}@{here}", f"{name}@{there}"

    def write(self, path: Path) -> RunDirectory:
        """Make the directory and analyse it."""
        run = RunDirectory(path)
        run.make()
        run.run_json.write_text(json.dumps(self.content))
        for capture in self.content["plan"]["captures"]:
            records = self.records[capture["file"].removesuffix(".pcap")]
            write_pcap(run.capture(capture["file"]), sorted(records, key=lambda record: record.t_ns))
        analyze_here(run, progress=lambda _: None)
        return run


def events(first_seq: int, count: int = 10) -> Events:
    """Return a batch of stream 2."""
    return Events(0, 0, 2, first_seq, count, 10, 0, 0, payload(2, first_seq))


PUBLISH = Publish(0, 0, 2, 1, 10, 10, 0, payload(2, 1))


def around_the_cut() -> SmallRun:
    """Return the run that the module describes."""
    run = SmallRun()
    publishing = Conversation(run, DRIVER, PROXY_2, 40_000, PORT)
    publishing.open(4_900)
    publishing.send(4_901, Hello(1, 7, "r2/driver-0"))
    offset = publishing.send(4_940, PUBLISH)
    publishing.resend(4_955, offset + 100, b"".join(CODEC.encode(PUBLISH))[100:])  # and both copies came
    answering = Conversation(run, PROXY_2, DRIVER, PORT, 40_000)
    answering.open(4_900.5)
    answering.send(4_942.5, Published(2, 1, 1, 10))
    forwarding = Conversation(run, PROXY_2, PROXY_3, 40_001, PORT)
    forwarding.open(4_910)
    forwarding.send(4_945, events(1), Advertisement((Counter(2, 10),)), cut=(60,))
    batch = events(11)
    offset = forwarding.send(5_010, batch, cut=(80,), lost=True)
    forwarding.resend(5_260, offset, b"".join(CODEC.encode(batch)), lost=True)
    asking = Conversation(run, CLIENT, PROXY_3, 40_002, PORT)
    asking.open(4_915)
    asking.send(4_960.25, Subscribe(2, 0))
    return run
