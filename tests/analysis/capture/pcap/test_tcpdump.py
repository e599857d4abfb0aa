"""tcpdump's capture of a real connection decodes to the messages sent."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from analysis.capture.pcap.files.index import build_index
from analysis.capture.pcap.streams import HostCapture
from node.protocols.sprinkler.messages import CODEC, EventKind, Events
from tests.analysis.capture.pcap.reading import extract

NAMESPACE = (
    ["unshare", "--net"]
    if os.geteuid() == 0
    else ["unshare", "--user", "--map-current-user", "--keep-caps", "--net"]
)


@pytest.mark.network
def test_messages_of_a_real_connection_are_decoded_as_sent(tmp_path: Path) -> None:
    chance = random.Random(1)
    sent = []
    for _ in range(300):
        count, size = chance.choice([(1, 10), (100, 10), (1000, 50)])
        stream, seq = chance.randrange(4), chance.randrange(1, 10**9)
        sent.append(Events(EventKind.DATA, 0, stream, seq, count, size, 0, 0, bytes(count * size)))
    content = b"".join(bytes(part) for one in sent for part in CODEC.encode(one))
    (tmp_path / "content").write_bytes(content)
    capture = tmp_path / "host.pcap"
    module = [sys.executable, "-m", "tests.analysis.capture.pcap.conversation"]
    subprocess.run(
        [*NAMESPACE, *module, capture, tmp_path / "content", "7", "100000", "3"], check=True, timeout=60
    )

    index = build_index(capture)
    assert index.problem is None
    assert index.sections[0].interfaces[0].units_per_s == 10**9
    tables = extract(HostCapture(str(capture), "host", "127.0.0.1", 7000), CODEC)
    found = {name: table.to_pylist() for name, table in tables.items()}
    assert [(row["stream"], row["first_seq"], row["count"]) for row in found["messages"]] == [
        (one.stream, one.first_seq, one.count) for one in sent
    ]
    assert found["gaps"] == []
    there = next(row for row in found["decoding"] if row["messages"])
    assert (there["bytes"], there["unfinished_bytes"], there["stopped"]) == (len(content), 0, None)
    assert index.first_ns is not None
    assert all(
        index.first_ns <= row["t_first_ns"] <= row["t_complete_ns"] <= index.last_ns
        for row in found["messages"]
    )  # type: ignore[operator]
