"""A slow connection, or a sender without further requests."""

import os
import signal
from pathlib import Path

from testbed.machines.shipping.frames import GREETING, Kind, encode
from testbed.machines.shipping.limits import DiskBudget, RateBudget
from testbed.machines.shipping.result import FileOutcome
from testbed.machines.shipping.session import SenderSession
from testbed.machines.shipping.transfer import FileTransfer
from tests.testbed.machines.shipping.machines import ProcessStream, ThreadStream, noise, write_files

MIB = 1 << 20
PIPE_BYTES_MIN = 4096


class Trickle(ThreadStream):
    """Gives a little at a time, and 15 seconds pass for each."""

    now_s = 0.0
    watched: SenderSession
    silences_s: list[float]

    def read(self, size: int) -> bytes:
        """See Stream."""
        self.now_s += 15
        self.silences_s.append(self.watched.silent_s())
        return super().read(min(size, 20_000))


def test_a_slow_answer_is_not_silence(tmp_path: Path) -> None:
    """Each chunk takes minutes, but no piece of it takes longer than silence may."""
    stream = Trickle(write_files(tmp_path / "h0", {"captures/a.pcap": noise(MIB)}))
    stream.silences_s = []
    disk = DiskBudget(tmp_path, None, 0)
    transfer = FileTransfer("h0", tmp_path / "run", {}, disk)
    stream.watched = SenderSession(
        stream,
        transfer,
        RateBudget(None),
        disk,
        over=lambda: True,
        heard=lambda _: None,
        show=lambda _: None,
        stopped=lambda: False,
        now_s=lambda: stream.now_s,
    )
    assert stream.watched.run()
    assert transfer.outcome()[0].became is FileOutcome.WHOLE
    assert len(stream.silences_s) > MIB / 20_000
    assert set(stream.silences_s) == {15.0}
    assert stream.watched.silent_s() == 0
    stream.close()


def test_a_sender_without_requests_ends(tmp_path: Path) -> None:
    """Its input is open, so nothing else tells it."""
    stream = ProcessStream.to(tmp_path, "--idle", "1")
    assert stream.process.wait(60) == -signal.SIGALRM


def test_a_sender_that_is_stuck_in_a_write_ends(tmp_path: Path) -> None:
    """Do not read its output, as after a silent connection loss."""
    there = write_files(tmp_path / "h0", {"captures/a.pcap": noise(2 * MIB)})
    reading, writing = os.pipe()
    os.write(writing, encode(Kind.LIST) + encode(Kind.READ, b'["captures/a.pcap",0,1048576,""]'))
    stream = ProcessStream.to(there, "--idle", "1", stdin=reading)
    assert stream.process.wait(60) == -signal.SIGALRM
    assert stream.process.stdout is not None
    assert len(stream.process.stdout.read()) > PIPE_BYTES_MIN, "it has been asked, and was answering"
    os.close(reading)
    os.close(writing)


def test_a_sender_ends_with_its_input_and_has_written_nothing(tmp_path: Path) -> None:
    there = write_files(tmp_path / "h0", {"run.json": b"{}"})
    before = sorted((path, path.stat().st_mtime_ns) for path in there.rglob("*"))
    stream = ProcessStream.to(there)
    assert stream.process.stdin is not None
    stream.process.stdin.close()
    assert stream.process.stdout is not None
    assert stream.process.stdout.read() == GREETING
    assert stream.process.wait(60) == 0
    assert sorted((path, path.stat().st_mtime_ns) for path in there.rglob("*")) == before


def test_a_sender_gives_way_to_whatever_else_runs(tmp_path: Path) -> None:
    stream = ProcessStream.to(tmp_path)
    assert stream.read(len(GREETING)) == GREETING
    niceness = os.getpriority(os.PRIO_PROCESS, stream.process.pid)
    stream.close()
    assert niceness == 19
