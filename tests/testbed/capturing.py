"""Runs in a sandbox for `test_captures`: `python -m tests.testbed.capturing DIRECTORY WHAT` captures lo."""

import asyncio
import json
import os
import signal
import socket
import sys
from dataclasses import asdict
from pathlib import Path

from testbed.captures import FLUSH_S, CapturePoint, Captures
from testbed.errors import TestbedError
from testbed.plan import CapturePlan

POINT = CapturePoint(CapturePlan("lo.pcap"), None, "lo")
WATCHED = CapturePoint(CapturePlan("lo.pcap", in_parts=True), None, "lo")
BESIDE = CapturePoint(CapturePlan("beside.pcap"), None, "lo")
NO_SUCH_POINT = CapturePoint(CapturePlan("none.pcap"), None, "nowhere0")
ROTATIONS = 2
DATAGRAMS = 500


def send_datagrams() -> None:
    """To nobody, over lo."""
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver,
    ):
        receiver.bind(("127.0.0.1", 0))
        for number in range(DATAGRAMS):
            sender.sendto(number.to_bytes(4), receiver.getsockname())


async def main(directory: Path, what: str) -> None:
    """Prints what happened as JSON."""
    problems: list[str] = []
    problem = asyncio.Event()

    def on_problem(text: str) -> None:
        problems.append(text)
        problem.set()

    captures = Captures(directory, root=os.getuid() == 0, on_problem=on_problem)
    snaplen_bytes = 96 if what == "short" else None
    try:
        await captures.start(_points(what), snaplen_bytes=snaplen_bytes)
    except TestbedError as error:
        problems.append(str(error))
    else:
        send_datagrams()
        if what == "killed":
            os.kill(_only_tcpdump(), signal.SIGKILL)
            await problem.wait()
        elif what == "parts":
            await _send_until_rotated(directory / "lo.pcap.parts")
        else:
            await asyncio.sleep(FLUSH_S)
    results = await captures.stop()
    again = await captures.stop()
    answer = {"results": [asdict(result) for result in results], "again": again, "problems": problems}
    sys.stdout.write(json.dumps(answer))


def _points(what: str) -> list[CapturePoint]:
    match what:
        case "nowhere":
            return [NO_SUCH_POINT]
        case "parts":
            return [WATCHED, BESIDE]
    return [POINT]


async def _send_until_rotated(folder: Path) -> None:
    """Packets without a pause, so that rotations happen in between."""
    while len(list(folder.iterdir())) <= ROTATIONS:
        send_datagrams()
        await asyncio.sleep(0.01)
    await asyncio.sleep(FLUSH_S)


def _only_tcpdump() -> int:
    [pid] = [int(p.parent.name) for p in Path("/proc").glob("[0-9]*/comm") if p.read_text() == "tcpdump\n"]
    return pid


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
