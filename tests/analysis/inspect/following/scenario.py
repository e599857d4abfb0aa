"""A run with hand-written tables: one event, published in r2 and in transit while r2-r3 is cut."""

import json
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from analysis.schemas import PACKETS, TRANSFERS
from experiments.records.rundir import RunDirectory
from tests.analysis.timelines.world import CUT, MS, ZERO, run_json

SEQ, REQUEST, ISN = 105, 55, 4_294_967_290  # so that sequence numbers wrap within the first message
PROXY_PORT = 7000


class Scenario:
    """Collects rows; every connection's stream begins at offset 0 with its first message."""

    def __init__(self) -> None:
        self.run = run_json()
        self.addresses = {host["name"]: host["address"] for host in self.run["plan"]["hosts"]}
        self.transfers: list[dict[str, Any]] = []
        self.packets: list[dict[str, Any]] = []

    def send(
        self, name: str, sender: str, receiver: str, sent_ms: float, took_ms: float | None, *,
        opened_ms: float = 1, **content: Any,
    ) -> None:  # fmt: skip
        """Add a message of 3000 bytes that leaves `sent_ms` after the cut and is complete `took_ms` later.

        opened_ms: time since the SYN of its connection.
        """
        sent = CUT + int(sent_ms * MS) + ZERO
        arrived = None if took_ms is None else sent + int(took_ms * MS)
        src, dst = self.addresses[sender], self.addresses[receiver]
        row = dict.fromkeys(TRANSFERS.names) | {
            "t_ns": sent, "sender": sender, "receiver": receiver, "src": src, "dst": dst, "sport": PROXY_PORT,
            "dport": 40_000 + len(self.transfers), "connection": 0, "stream_offset": 0, "length": 3000,
            "t_sent_ns": sent, "t_left_ns": sent, "t_arrived_ns": arrived, "t_complete_ns": arrived,
            "fate": "lost" if arrived is None else "arrived", "type": name, "retransmitted": False,
        }  # fmt: skip
        self.transfers.append(row | content)
        self.packet(sender, sent - int(opened_ms * MS), syn=True)
        self.packet(sender, sent)
        if arrived is not None:
            self.packet(receiver, arrived)

    def packet(self, place: str, t_ns: int, *, syn: bool = False, before: int = 0, flags: int = 16) -> None:
        """Add the last message as one offloaded packet at this place and time, or its connection's SYN.

        before: this number of bytes before the message instead. flags: without ACK alone, no data.
        """
        last = self.transfers[-1]
        addresses = {f"{side}_lo": int(ip_address(last[side])) for side in ("src", "dst")}
        seq = ISN if syn else (ISN + 1 + last["stream_offset"] - before) % 2**32
        length = before or (last["length"] if flags == 16 and not syn else 0)
        row = dict.fromkeys(PACKETS.names, 0) | {
            "capture": place if "@" in place else f"{place}-eth0", "t_ns": t_ns, "proto": 6,
            "sport": last["sport"], "dport": last["dport"], "seq": seq,
            "flags": 2 if syn else flags, "payload_length": length,
        }  # fmt: skip
        self.packets.append(row | addresses)

    def write(self, path: Path) -> RunDirectory:
        """Make the run directory."""
        run = RunDirectory(path)
        run.make()
        run.run_json.write_text(json.dumps(self.run))
        for name, rows, schema in (
            ("transfers", self.transfers, TRANSFERS),
            ("packets", self.packets, PACKETS),
        ):
            run.table(name).mkdir()
            rows.sort(key=lambda row: row["t_ns"])
            pq.write_table(pa.Table.from_pylist(rows, schema=schema), run.table(name) / "part-all.parquet")
        return run


def around_the_cut() -> Scenario:
    """Return events published 5 ms before the cut of r2-r3, lost there, and sent via r1 a second later."""
    world = Scenario()
    batch = {"stream": 2, "first_seq": 101, "count": 10, "covered": 10, "kind": 0}
    world.send("PUBLISH", "r2-driver-0", "r2-proxy-0", -5, 3, stream=2, request=51, count=10)
    world.send("PUBLISHED", "r2-proxy-0", "r2-driver-0", -1, 2, stream=2, request=51, first_seq=101, count=10)
    world.send("EVENTS", "r2-proxy-0", "r2-client-0", -1, 2, **batch)
    world.send("EVENTS", "r2-proxy-0", "r1-proxy-0", -1, 37.5, **batch)
    world.send("EVENTS", "r2-proxy-0", "r3-proxy-0", -1, None, **batch)
    world.packet("r2-proxy-0", ZERO + CUT + 200 * MS)
    world.send("SUBSCRIBE", "r3-proxy-0", "r1-proxy-0", 958, 42, stream=2, cnt=90)
    world.send("EVENTS", "r1-proxy-0", "r3-proxy-0", 1_000, 45, **batch)
    world.packet("r1-r3@r1", ZERO + CUT + 1_001 * MS)
    world.send("EVENTS", "r3-proxy-0", "r3-client-1", 1_046, 2, **batch)
    return world
