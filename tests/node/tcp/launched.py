"""A launcher with real node processes on loopback addresses, for tests."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from node.core.deliveries import DeliveryRecord, RecordKind, read_records
from node.core.specification import NodeSpec
from tests.node.cluster import specs

WAIT_S = 60.0  # for anything; only a broken build takes that long
PATIENT = {  # a busy machine holds processes up for seconds, which is none of what is tested here
    "connect_timeout_us": 60_000_000,
    "restore_wait_us": 60_000_000,
    "silence_periods": 60.0,
}
_reserved: list[socket.socket] = []


def free_port() -> int:
    """Return a port that is reserved while these tests run; nodes may listen on it (SO_REUSEADDR)."""
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("", 0))  # and does not listen
    _reserved.append(holder)
    return holder.getsockname()[1]


def loopback_specs(folder: Path, **given: Any) -> list[NodeSpec]:
    """Return `cluster.specs` with a separate loopback address for each process."""
    parameters = {**PATIENT, "port": free_port(), **given.pop("parameters", {})}
    made = specs(address=lambda region, at: f"127.0.{region[1:]}.{at + 1}", parameters=parameters, **given)
    return [
        replace(
            spec, log=str(folder / f"{spec.host}.jsonl"), deliveries=str(folder / f"{spec.host}.deliveries")
        )
        for spec in made
    ]


class Launched:
    """A launcher process with its input and output."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.said: list[dict[str, Any]] = []
        self.published: dict[str, dict[str, int]] = {}
        self.delivered: dict[str, dict[str, int]] = {}
        self.silent: dict[str, bool] = {}

    def tell(self, do: str, **more: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"do": do, **more}) + "\n")
        self.process.stdin.flush()

    def start(self, spec: NodeSpec) -> None:
        self.tell("start", node=asdict(spec))

    def start_all(self, specs: Sequence[NodeSpec]) -> None:
        """Start these processes, wait until they are ready, and let drivers publish."""
        for spec in specs:
            self.start(spec)
        self.wait_ready(len(specs))
        self.go()

    def wait_published(self, count: int) -> None:
        """Wait until the driver of r0 has published this number of events."""
        self.wait(lambda: self.published.get("r0/driver-0", {}).get("0", 0) >= count)

    def wait_delivered(self, name: str, stream: int, seq: int) -> None:
        self.wait(lambda: self.delivered.get(name, {}).get(str(stream), 0) >= seq)

    def kill(self, spec: NodeSpec) -> dict[str, Any]:
        """Kill a process; return its exit message."""
        before = len(self.all_said("exited"))
        self.signal(spec, signal.SIGKILL)
        return self.wait(lambda: self.all_said("exited")[before:])[0]

    def signal(self, spec: NodeSpec, number: int) -> None:
        os.kill(self.wait(lambda: self.all_said("started", name=spec.name))[-1]["pid"], number)

    def wait(self, condition: Callable[[], Any]) -> Any:
        """Read the launcher's messages until the condition holds; return its value."""
        deadline = time.monotonic() + WAIT_S
        while not (value := condition()):
            assert time.monotonic() < deadline, self.said[-20:]
            line = self.process.stdout.readline()
            assert line, "the launcher ended"
            message = json.loads(line)
            self.said.append(message)
            if message["did"] == "progress":
                self.published[message["name"]] = message["published"]
                self.delivered[message["name"]] = message["delivered"]
                self.silent[message["name"]] = message["silent"]
        return value

    def all_said(self, did: str, **fields: Any) -> list[dict[str, Any]]:
        return [
            m for m in self.said if m["did"] == did and all(m[key] == value for key, value in fields.items())
        ]

    def wait_ready(self, count: int) -> None:
        self.wait(lambda: len(self.all_said("ready")) >= count)

    def go(self) -> None:
        self.tell("go", start_ns=time.time_ns(), late_us=0)

    def drain(self, clients: int) -> None:
        """Stop the drivers, and wait until every client has all events."""
        self.tell("stop_drivers")

        def is_drained() -> bool:
            done = {stream: seq for by in self.published.values() for stream, seq in by.items()}
            got = [by for by in self.delivered.values() if by]
            return all(self.silent.values()) and len(got) == clients and all(by == done for by in got)

        self.wait(is_drained)

    def run_client(self, spec: NodeSpec, events: int) -> list[dict[str, Any]]:
        """Run one client until it has this number of events of stream 0; return its exit message."""
        self.start(spec)
        self.wait_ready(1)
        self.go()
        self.wait(lambda: self.delivered.get(spec.name, {}).get("0", 0) >= events)
        self.drain(clients=1)
        return self.finish(1)

    def finish(self, count: int) -> list[dict[str, Any]]:
        self.tell("finish")
        return self.wait(lambda: len(ended := self.all_said("exited")) >= count and ended)


@contextmanager
def launcher(within: Sequence[str] = ()) -> Iterator[Launched]:
    """Yield a launcher, and end it and its children afterwards. within: a command that starts it."""
    process = subprocess.Popen(
        [*within, sys.executable, "-m", "node.tcp.launcher"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Launched(process)
    finally:
        process.stdin.close()
        process.wait(WAIT_S)
        process.stdout.close()


def records(spec: NodeSpec, kind: RecordKind) -> list[DeliveryRecord]:
    found, torn = read_records(Path(spec.deliveries).read_bytes())
    assert torn == 0
    return [record for record in found if record.kind == kind]


def batches(spec: NodeSpec, kind: RecordKind, stream: int | None = None) -> list[tuple[int, ...]]:
    """Return stream, first number, count and CRC of the records of a kind, of a stream or of all."""
    return [
        (each.stream, each.first_seq, each.count, each.batch_crc)
        for each in records(spec, kind)
        if stream in {None, each.stream}
    ]


def logged(spec: NodeSpec, event: str) -> list[Mapping[str, Any]]:
    return [line for line in log_lines(spec) if line["event"] == event]


def log_lines(spec: NodeSpec) -> list[Mapping[str, Any]]:
    """Return the complete lines of a log; its last line may be incomplete."""
    whole, _, _ = Path(spec.log).read_text().rpartition("\n")
    return [json.loads(line) for line in whole.splitlines()]
