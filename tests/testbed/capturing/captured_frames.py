"""Runs in a sandbox for `test_captures`: `python -m tests.testbed.capturing.captured_frames DIRECTORY WHAT`
captures one end of a pair of interfaces that carries only the test's frames.
"""

import asyncio
import json
import os
import signal
import socket
import sys
from dataclasses import asdict
from pathlib import Path

from experiments.planned.plan import CapturePlan
from testbed.batches import run_batch
from testbed.capturing.capture_commands import TcpdumpPoint
from testbed.capturing.captures import FLUSH_S, TcpdumpCaptures
from testbed.errors import TestbedError
from testbed.network.commands import OPTIONAL_SETTINGS, ROOT_SETTINGS
from testbed.network.namespaces import write_settings

INTERFACE = "point"
POINT = TcpdumpPoint(CapturePlan("point.pcap"), None, INTERFACE)
NO_SUCH_POINT = TcpdumpPoint(CapturePlan("none.pcap"), None, "nowhere0")
FRAMES, FRAME_BYTES = 500, 46
HELD_UP_S = 0.2  # from when the captures are told to end


def make_interface() -> None:
    """Create the pair without IPv6, which would send packets by itself."""
    write_settings(ROOT_SETTINGS, optional=OPTIONAL_SETTINGS)
    lines = [
        f"link add {INTERFACE} type veth peer name other",
        "link set other up",
        f"link set {INTERFACE} up",
    ]
    run_batch("ip", lines, doing="making the interface")


def send_frames() -> None:
    """Send frames without a receiver."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
        sender.bind((INTERFACE, 0))
        for number in range(FRAMES):
            sender.send(number.to_bytes(FRAME_BYTES))


async def main(directory: Path, what: str) -> None:
    """Print the result as JSON."""
    problems: list[str] = []
    problem = asyncio.Event()

    def on_problem(text: str) -> None:
        problems.append(text)
        problem.set()

    make_interface()
    captures = TcpdumpCaptures(directory, root=os.getuid() == 0, on_problem=on_problem)
    try:
        await captures.start([NO_SUCH_POINT if what == "nowhere" else POINT], snaplen_bytes=None)
    except TestbedError as error:
        problems.append(str(error))
    else:
        match what:
            case "killed":
                send_frames()
                os.kill(_only_tcpdump(), signal.SIGKILL)
                await problem.wait()
            case "held up":
                os.kill(pid := _only_tcpdump(), signal.SIGSTOP)
                send_frames()
                await asyncio.sleep(FLUSH_S)
                asyncio.get_running_loop().call_later(HELD_UP_S, os.kill, pid, signal.SIGCONT)
            case _:
                send_frames()
                await asyncio.sleep(FLUSH_S)
    results = await captures.stop()
    again = await captures.stop()
    answer = {"results": [asdict(result) for result in results], "again": again, "problems": problems}
    sys.stdout.write(json.dumps(answer))


def _only_tcpdump() -> int:
    [pid] = [int(p.parent.name) for p in Path("/proc").glob("[0-9]*/comm") if p.read_text() == "tcpdump\n"]
    return pid


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
