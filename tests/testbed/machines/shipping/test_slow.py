"""A sender ends by itself, and does not disturb a run."""

import os
import signal
from pathlib import Path

import pytest

from testbed.machines.shipping.protocol import GREETING, Read, encode_request
from testbed.machines.shipping.receiver import MachineSource
from tests.testbed.machines.shipping.machines import ProcessStream, noise, write_files
from tests.testbed.machines.test_findings import machine

MIB = 1 << 20
PIPE_BYTES_MIN = 4096


def test_a_sender_that_is_stuck_in_a_write_ends(tmp_path: Path) -> None:
    """Do not read its output, as after a silent connection loss."""
    there = write_files(tmp_path / "h0", {"captures/a.pcap": noise(2 * MIB)})
    reading, writing = os.pipe()
    identity = (there / "captures/a.pcap").stat().st_ino
    os.write(writing, encode_request(Read("captures/a.pcap", identity, 0, MIB)))
    stream = ProcessStream.to(there, "--idle", "1", stdin=reading)
    assert stream.process.wait(60) == -signal.SIGALRM
    assert stream.process.stdout is not None
    assert len(stream.process.stdout.read()) > PIPE_BYTES_MIN, "it has been asked, and was answering"
    os.close(reading)
    os.close(writing)


def test_a_sender_has_the_lowest_priority(tmp_path: Path) -> None:
    stream = ProcessStream.to(tmp_path)
    assert stream.read(len(GREETING)) == GREETING
    niceness = os.getpriority(os.PRIO_PROCESS, stream.process.pid)
    stream.close()
    assert niceness == 19


@pytest.mark.parametrize(("lease_s", "idle_s"), [(5.0, "5"), (7.5, "7"), (3600.0, "60")])
def test_a_sender_without_requests_does_not_outlive_the_lease(lease_s: float, idle_s: str) -> None:
    command = MachineSource(machine(0), "/f/runs/x", "/f/code/1", lease_s=lease_s).command()
    assert command[command.index("--idle") + 1] == idle_s
    assert command.count("--without") == 2, "the supervisor's own files are not shipped"
