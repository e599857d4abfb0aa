"""Inside one of two user-mode-linux guests: sets its clock apart, exchanges TCP with the other, captures it.

`python -m tests.testbed.uml.clock_guest NAME FOLDER SETTINGS`: the capture goes to FOLDER, which is the
host's; SETTINGS, as JSON, say what to do with the clock. Guest `a` answers what guest `b` sends.

The test needs the true offsets. Both kernels are processes of one machine and share its processor's
time-stamp counter: each guest continuously records pairs of its clock and the counter.
"""

import ctypes
import json
import mmap
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

INTERFACE, PORT = "vec0", 7000
ADDRESSES = {"a": "10.9.0.1", "b": "10.9.0.2"}
SHARED = Path("/run/shared")
ROUNDS, PAUSE_S, MESSAGE = 1_200, 0.002, b"x" * 20
CONNECT_TRIES, CONNECT_PAUSE_S = 1_000, 0.1
CAPTURE_END_S_MAX = 60
ADJ_FREQUENCY, ADJ_SETOFFSET, ADJ_NANO = 0x0002, 0x0100, 0x2000
PPM = 1 << 16  # adjtimex(2): `freq` counts parts of a millionth with a 16-bit fraction


@dataclass(frozen=True, slots=True)
class Settings:
    """A guest's changes to its clock: set it ahead at once, change its rate, set it again half-way."""

    ahead_s: float = 0.0
    rate_ppm: float = 0.0
    step_ms: float = 0.0


class Timex(ctypes.Structure):
    """The beginning of `struct timex`, with only the fields in use named."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("others", ctypes.c_long * 6),
        ("seconds", ctypes.c_long),
        ("nanoseconds", ctypes.c_long),
        ("rest", ctypes.c_long * 24),
    )


def order(name: str, folder: Path, settings: Settings) -> list[str]:
    """Return the command of a guest with these settings."""
    return [sys.executable, "-m", __spec__.name, name, str(folder), json.dumps(asdict(settings))]


def counter() -> Callable[[], int]:
    """Return a reader of the processor's time-stamp counter: RDTSC, which writes EDX and EAX."""
    code = bytes.fromhex("0f31 48c1e220 4809d0 c3")  # rdtsc; shl rdx, 32; or rax, rdx; ret
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    held = ctypes.c_char.from_buffer(page)  # keeps the page
    read = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(held))

    def count() -> int:
        assert held is not None
        return int(read())

    return count


def set_ahead(by_s: float) -> None:
    """Set this machine's clock ahead by this much, even if the machine does not run for a while."""
    if by_s:
        seconds, nanoseconds = divmod(round(by_s * 1e9), 10**9)
        adjust(Timex(modes=ADJ_SETOFFSET | ADJ_NANO, seconds=seconds, nanoseconds=nanoseconds))


def set_rate(ppm: float) -> None:
    """Make this machine's clock faster from now on."""
    adjust(Timex(modes=ADJ_FREQUENCY, freq=round(ppm * PPM)))


def adjust(timex: Timex) -> None:
    """Call adjtimex(2). Raises OSError."""
    if ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(timex)) < 0:
        raise OSError(ctypes.get_errno(), "adjtimex")


def capturing(name: str) -> "subprocess.Popen[bytes]":
    """Begin to capture; return when tcpdump listens."""
    line = ["tcpdump", "-i", INTERFACE, "-n", "-U", "-s", "128", "--time-stamp-precision=nano"]
    process = subprocess.Popen(
        [*line, "-Z", "root", "-w", str(SHARED / f"{name}.pcap")], stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    for said in process.stderr:
        if b"listening" in said:
            return process
    raise RuntimeError("tcpdump did not start")


def connected(name: str) -> socket.socket:
    """Return the connection between the two guests."""
    if name == "a":
        with socket.create_server((ADDRESSES["a"], PORT)) as listening:
            return listening.accept()[0]
    for _ in range(CONNECT_TRIES):
        try:
            connection = socket.create_connection((ADDRESSES["a"], PORT), timeout=5)
        except OSError:
            time.sleep(CONNECT_PAUSE_S)  # the other one is still booting
        else:
            connection.settimeout(None)
            return connection
    raise RuntimeError("the other guest did not answer")


def exchange(name: str, connection: socket.socket, settings: Settings) -> list[tuple[int, int, int]]:
    """Exchange messages: one guest sends, the other answers. Returns count before, clock in ns, count
    after.
    """
    noted = []
    count = counter()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for number in range(ROUNDS):
        if number == ROUNDS // 2:
            set_ahead(settings.step_ms / 1e3)
        noted.append((count(), time.time_ns(), count()))
        if name == "b":
            time.sleep(PAUSE_S)
            connection.sendall(MESSAGE)
        got = connection.recv(len(MESSAGE), socket.MSG_WAITALL)
        if len(got) < len(MESSAGE):
            raise RuntimeError("the other guest is gone")
        if name == "a":
            connection.sendall(MESSAGE)
    return noted


def main(name: str, folder: str, settings_json: str) -> None:
    """Run the guest that the module describes."""
    settings = Settings(**json.loads(settings_json))
    SHARED.mkdir()
    subprocess.run(["mount", "-t", "hostfs", "-o", folder, "none", str(SHARED)], check=True)
    subprocess.run(["ip", "address", "add", f"{ADDRESSES[name]}/24", "dev", INTERFACE], check=True)
    subprocess.run(["ip", "link", "set", INTERFACE, "up"], check=True)
    set_ahead(settings.ahead_s)
    set_rate(settings.rate_ppm)
    capture = capturing(name)
    with connected(name) as connection:
        noted = exchange(name, connection, settings)
    (SHARED / f"{name}.json").write_text(json.dumps(noted))
    capture.send_signal(signal.SIGINT)
    capture.wait(CAPTURE_END_S_MAX)


if __name__ == "__main__":
    main(*sys.argv[1:])
