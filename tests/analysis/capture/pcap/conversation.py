"""A real TCP connection over loopback, captured by tcpdump; to be run in its own network namespace.

    python -m tests.analysis.capture.pcap.conversation CAPTURE BYTES [PIECE…]

sends the content of the file BYTES from a client to a server in writes of these sizes, repeated.
"""

import asyncio
import itertools
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

PORT = 7000
LAST = b"the last packet of the conversation"
WAIT_S = 20.0


async def talk(content: bytes, sizes: list[int]) -> None:
    """Send everything, and wait until the server has read it."""
    done = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await reader.read(-1) == content
        writer.close()
        done.set()

    async with await asyncio.start_server(serve, "127.0.0.1", PORT):
        _, writer = await asyncio.open_connection("127.0.0.1", PORT)
        offset = 0
        for size in itertools.cycle(sizes):
            if offset >= len(content):
                break
            writer.write(content[offset : offset + size])
            await writer.drain()
            offset += size
        writer.close()
        await done.wait()


def wait_for_last(capture: Path) -> None:
    """Send a datagram and wait until it is in the file, so that everything before it is too."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(LAST, ("127.0.0.1", 9))
    deadline = time.monotonic() + WAIT_S
    while LAST not in capture.read_bytes()[-4096:]:
        assert time.monotonic() < deadline, "tcpdump wrote no last packet"
        time.sleep(0.01)


def main(capture: str, source: str, *sizes: str) -> None:
    """Bring loopback up, capture, talk."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    user = ["-Z", "root"] if os.geteuid() == 0 else []
    command = [
        "tcpdump",
        "-i",
        "lo",
        "-U",
        "--time-stamp-precision=nano",
        "-B",
        "65536",
        *user,
        "-w",
        capture,
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as tcpdump:
        assert tcpdump.stderr is not None
        while "listening on" not in tcpdump.stderr.readline():
            pass
        asyncio.run(talk(Path(source).read_bytes(), [int(size) for size in sizes]))
        wait_for_last(Path(capture))
        tcpdump.terminate()


if __name__ == "__main__":
    main(*sys.argv[1:])
