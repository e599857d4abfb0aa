"""Captures are complete to the last packet, and their ends are reported correctly."""

import asyncio
import json
import struct
import sys
from pathlib import Path
from typing import Any

import pytest

from experiments.planned.plan import CapturePlan
from testbed.capturing import captures as capturing
from testbed.capturing.capture_commands import CONFINED, TcpdumpPoint, tcpdump_command
from testbed.capturing.captures import TcpdumpCaptures, has_all, parse_counts
from testbed.errors import TestbedError
from testbed.sandbox import run_in_sandbox
from tests.testbed.capturing.captured_frames import FRAME_BYTES, FRAMES

NANOSECOND_MAGIC = 0xA1B23C4D


def test_a_capture_in_a_host_enters_its_namespace_first():
    point = TcpdumpPoint(CapturePlan("r2-gw-eth0.pcap", host="r2-gw"), "/proc/7/ns/net", "eth0")
    command = tcpdump_command(point, Path("c/r2-gw-eth0.pcap"), snaplen_bytes=None, root=False)
    assert command[:3] == ["nsenter", "--net=/proc/7/ns/net", "--"]
    assert command[3] == "setpriv"
    assert command[3 + len(CONFINED)] == "tcpdump"
    assert "-Z" not in command


def test_a_tcpdump_that_hangs_at_its_start_is_killed(tmp_path, monkeypatch):
    monkeypatch.setattr(capturing, "READY_TIMEOUT_S", 0.2)
    monkeypatch.setattr(capturing, "END_TIMEOUT_S", 0.2)
    monkeypatch.setattr(capturing, "tcpdump_command", lambda *_, **__: ["sh", "-c", "kill -STOP $$"])
    problems: list[str] = []

    async def start_and_stop() -> None:
        captures = TcpdumpCaptures(tmp_path, root=True, on_problem=problems.append)
        with pytest.raises(TestbedError, match=r"the capture x\.pcap did not start in 0\.2 s"):
            await captures.start([TcpdumpPoint(CapturePlan("x.pcap"), None, "l1a")], snaplen_bytes=None)
        async with asyncio.timeout(30):
            await captures.stop()

    asyncio.run(start_and_stop())
    assert problems == ["the capture x.pcap had to be killed"]


def test_counts_are_parsed_from_tcpdumps_output():
    said = "tcpdump: listening on eth0\n1 packet captured\n12 packets received by filter\n"
    said += "3 packets dropped by kernel\n"
    assert parse_counts(said) == (1, 3)


def test_a_capture_is_complete_with_the_packets_of_its_first_count():
    first = "tcpdump: 90 packets captured, 100 packets received by filter, 3 packets dropped by kernel\n"
    assert not has_all("tcpdump: listening on eth0\n")
    assert not has_all(first)
    assert not has_all(first + "tcpdump: 98 packets capt")
    assert has_all(
        first + "tcpdump: 97 packets captured, 105 packets received by filter, 3 packets dropped by kernel\n"
    )


def capture(directory: Path, what: str) -> dict[str, Any]:
    result = run_in_sandbox(
        [sys.executable, "-m", "tests.testbed.capturing.captured_frames", str(directory), what]
    )
    assert result.returncode == 0, result.stderr
    answer: dict[str, Any] = json.loads(result.stdout)
    assert answer["again"] == []
    return answer


def records(file: Path) -> list[tuple[int, int]]:
    """Return captured and original length of each record."""
    data, offset, lengths = file.read_bytes(), 24, []
    assert struct.unpack_from("<I", data)[0] == NANOSECOND_MAGIC
    while offset < len(data):
        kept, length = struct.unpack_from("<8xII", data, offset)
        lengths.append((kept, length))
        offset += 16 + kept
    return lengths


@pytest.mark.network
@pytest.mark.parametrize("what", ["whole", "held up"])
def test_every_packet_up_to_the_last_is_in_the_file_even_if_tcpdump_is_behind(tmp_path, what):
    answer = capture(tmp_path, what)
    assert answer["problems"] == []
    [result] = answer["results"]
    assert (result["packets"], result["kernel_drops"]) == (FRAMES, 0)
    assert records(tmp_path / "point.pcap") == [(FRAME_BYTES, FRAME_BYTES)] * FRAMES


@pytest.mark.network
def test_a_capture_that_is_killed_is_a_problem_and_its_counts_are_unknown(tmp_path):
    answer = capture(tmp_path, "killed")
    assert answer["problems"] == ["the capture point.pcap ended by itself (-9): no output"]
    assert answer["results"][0]["packets"] is None
    assert (tmp_path / "point.pcap").exists()


@pytest.mark.network
def test_a_capture_that_cannot_listen_reports_why(tmp_path):
    answer = capture(tmp_path, "nowhere")
    assert len(answer["problems"]) == 1
    assert "none.pcap did not start: tcpdump: nowhere0: " in answer["problems"][0]
