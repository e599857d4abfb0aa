"""How many events a second of a processor one client publishes and takes, each on record before the next.

In a process of its own, as clients are, with a socket in place of its minder.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from node.core.deliveries import encode_file_header
from testbed.programs import CLIENT
from tests.bench.rows import Row, row

EVENTS = 200_000
EVENT_BYTES = 100
CODE = f"""
import time, cutset_client
session = cutset_client.connect()
publisher, subscriber = session.publisher(), session.subscriber()
begun = time.process_time()
for _ in range({EVENTS}):
    event = publisher.next()
    publisher.acknowledged(event)
published = time.process_time()
for _ in range({EVENTS}):
    subscriber.got(event.payload)
print({EVENTS} / (published - begun), {EVENTS} / (time.process_time() - published))
session.close()
"""


def measure() -> list[Row]:
    """Rows for `make bench`."""
    with (
        tempfile.TemporaryDirectory() as folder,
        socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as minder,
    ):
        published_per_s, got_per_s = rates(Path(folder), minder)
    of = f"of {EVENT_BYTES} B, with a record on disk for each"
    return [
        row(f"events published {of}", published_per_s, "/s", 100_000),
        row(f"events taken {of}", got_per_s, "/s"),
    ]


def rates(folder: Path, minder: socket.socket) -> tuple[float, float]:
    """Events a second of a processor, published and taken."""
    channel = f"cutset-bench-{os.getpid()}"
    minder.bind("\0" + channel)
    minder.listen()
    (folder / "deliveries").write_bytes(encode_file_header())
    told = {
        "name": "r0/publisher-0",
        "region": "r0",
        "index": 0,
        "homes": ["r0"],
        "publishes": [0],
        "workload": {"event_size_bytes": EVENT_BYTES, "rate_per_s": 1e9},
        "published": "acknowledged",
        "since": "beginning",
        "subscribes": True,
        "deliveries": str(folder / "deliveries"),
        "numbers": str(folder / "numbers"),
        "channel": channel,
        "true_epoch_ns": None,
    }
    (folder / "client.json").write_text(json.dumps(told))
    environment = {"CUTSET_CLIENT": str(folder / "client.json"), "PYTHONPATH": str(CLIENT)}
    command = [sys.executable, "-c", CODE]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as client:
        to_client, _ = minder.accept()
        with to_client:
            to_client.send(json.dumps({"do": "go", "start_ns": time.time_ns(), "late_us": 0}).encode())
            assert client.stdout is not None
            published_per_s, got_per_s = map(float, client.stdout.readline().split())
    return published_per_s, got_per_s
