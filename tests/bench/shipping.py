"""The speed of file transfers from four machines of a lab: shipped over connections that are cut three times
each, compared with scp and paramiko's sftp without cuts, for the same files in the same run.

Two kinds of content: `captures`, with packets as in a run, which compress well; and noise, which does not
compress. Everything runs on one machine, so senders, SSH servers and the receiver share its processors.
"""

import hashlib
import os
import random
import shutil
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.bench.rows import Row, row
from tests.testbed.machines.lab import ControllerProcess, Lab

MACHINES = 4
FILES_PER_MACHINE = 8
TOTAL_BYTES = {"captures": 1 << 30, "noise": 256 << 20}
CUTS = (0.2, 0.5, 0.8)
RUN = "20260101T000000Z-bench-000000"
PACKET_BYTES = 1400
SLOW_BITS_PER_S = 200_000_000
LOOK_S = 0.01
TIMEOUT_S = 600.0
CONTROLLER = [sys.executable, "-m", "tests.testbed.machines.shipping.controller"]


def capture(size: int, seed: int) -> Iterator[bytes]:
    """Generate a classic pcap of about this size: batches of numbered events with some varying bytes."""
    randomness, numbers = random.Random(seed), range(PACKET_BYTES // 10)
    yield struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262_144, 1)
    for packet in range(size // (PACKET_BYTES + 82)):
        head = struct.pack("<IIII", packet // 10_000, packet % 10_000 * 100_000, 1466, 1466)
        ids = struct.pack(">HI", packet & 0xFFFF, packet * PACKET_BYTES & 0xFFFFFFFF)
        events = b"".join((packet * 140 + each).to_bytes(8) + b"ev" for each in numbers)
        yield head + bytes(20) + ids + bytes(36) + randomness.randbytes(4) + events


def noise(size: int, seed: int) -> Iterator[bytes]:
    """Bytes that do not compress."""
    randomness = random.Random(seed)
    for _ in range(0, size, 1 << 20):
        yield randomness.randbytes(1 << 20)


def fill(lab: Lab, kind: str) -> dict[str, str]:
    """Write the files of one kind; the checksum of each, by its name."""
    make: Callable[[int, int], Iterator[bytes]] = capture if kind == "captures" else noise
    size = TOTAL_BYTES[kind] // MACHINES // FILES_PER_MACHINE
    made = b"".join(make(size, 0))
    checksums = {}
    for number, machine in enumerate(lab.machines.values()):
        folder = machine.path(f"{machine.folder}/runs/{RUN}/captures")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for each in range(FILES_PER_MACHINE):
            content = made[:24] + struct.pack(">II", number, each) + made[24:]
            (folder / f"r{number}-{each}.pcap").write_bytes(content)
            checksums[f"r{number}-{each}.pcap"] = hashlib.sha256(content).hexdigest()
    return checksums


@contextmanager
def fresh(lab: Lab) -> Iterator[Path]:
    """Yield a folder for received files."""
    with tempfile.TemporaryDirectory(dir=lab.place) as place:
        (Path(place) / "captures").mkdir()
        yield Path(place)


def came(place: Path) -> dict[str, str]:
    """Return the checksums of received files."""
    found = {}
    for path in (place / "captures").iterdir():
        with path.open("rb") as file:
            found[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def size(place: Path, number: int) -> int:
    """Return the received bytes of a machine."""
    return sum(path.stat().st_size for path in (place / "captures").glob(f"r{number}-*"))


def controlled(lab: Lab, place: Path, how: str) -> ControllerProcess:
    """Begin; returns when it has logged in everywhere."""
    process = lab.popen([*CONTROLLER, lab.inventory, RUN, place, "--how", how], stdout=-1)
    assert process.stdout is not None
    assert process.stdout.readline() == "shipping\n"
    return process


def cut(lab: Lab, place: Path, process: ControllerProcess, kind: str) -> int:
    """Kill each machine's connections three times on the way; how often one was killed."""
    each_bytes = TOTAL_BYTES[kind] / MACHINES
    waiting = [(share * each_bytes, number) for number in range(MACHINES) for share in CUTS]
    cuts = 0
    while waiting and process.poll() is None:
        for threshold, number in waiting:
            if size(place, number) >= threshold:
                waiting.remove((threshold, number))
                cuts += bool(lab[f"h{number}"].kill_connections())
                break
        time.sleep(LOOK_S)
    return cuts


@dataclass(frozen=True, slots=True)
class Came:
    """The result of a transfer: the rate, the number of cut connections, and damaged files."""

    mb_per_s: float
    cuts: int
    wrong: list[str]


def shipped(lab: Lab, kind: str, checksums: dict[str, str], *, cutting: bool) -> Came:
    """Ship all files of one kind."""
    with fresh(lab) as place:
        process = controlled(lab, place, "ship")
        start_s = time.monotonic()
        cuts = cut(lab, place, process, kind) if cutting else 0
        process.communicate(timeout=TIMEOUT_S)
        spent_s = time.monotonic() - start_s
        here = came(place)
    wrong = [name for name in sorted({*here, *checksums}) if here.get(name) != checksums.get(name)]
    return Came(TOTAL_BYTES[kind] / 1e6 / spent_s, cuts, wrong)


def by_sftp(lab: Lab, kind: str, checksums: dict[str, str]) -> float:
    """MB/s."""
    with fresh(lab) as place:
        process = controlled(lab, place, "sftp")
        start_s = time.monotonic()
        process.communicate(timeout=TIMEOUT_S)
        spent_s = time.monotonic() - start_s
        assert came(place) == checksums
    return TOTAL_BYTES[kind] / 1e6 / spent_s


def by_scp(lab: Lab, kind: str, checksums: dict[str, str]) -> float:
    """MB/s, one scp for each machine at the same time."""
    with fresh(lab) as place:
        start_s = time.monotonic()
        key, known = lab.home / ".ssh/id_ed25519", lab.home / ".ssh/known_hosts"
        options = ["-q", "-r", "-i", key, "-o", f"UserKnownHostsFile={known}", "-o", "BatchMode=yes"]
        copies = [
            lab.popen(["scp", *options, f"root@{each.control}:{each.folder}/runs/{RUN}/captures", place])
            for each in lab.machines.values()
        ]
        for copy in copies:
            assert copy.wait(TIMEOUT_S) == 0
        spent_s = time.monotonic() - start_s
        assert came(place) == checksums
    return TOTAL_BYTES[kind] / 1e6 / spent_s


def measure() -> list[Row]:
    """Rows for `make bench`."""
    if os.geteuid() != 0:
        return []  # a lab of machines needs root
    rows: list[Row] = []

    def add(name: str, value: float, unit: str, asked: float | None = None) -> None:
        missed = asked is not None and value != asked
        rows.append(row(name, value, unit, asked, missed=missed))

    with Lab(MACHINES) as lab:
        lab.know()
        for kind, total in TOTAL_BYTES.items():
            checksums = fill(lab, kind)
            what = f"{total >> 20} MiB of {kind}, {MACHINES} machines"
            cut_often = shipped(lab, kind, checksums, cutting=True)
            add(f"{what}: shipped", cut_often.mb_per_s, "MB/s")
            add(f"{what}: connections cut meanwhile", cut_often.cuts, "", MACHINES * len(CUTS))
            whole = shipped(lab, kind, checksums, cutting=False)
            add(f"{what}: shipped without cuts", whole.mb_per_s, "MB/s")
            lab.slow_control(SLOW_BITS_PER_S)
            slow = shipped(lab, kind, checksums, cutting=False)
            lab.slow_control(None)
            carried = f"which carries {SLOW_BITS_PER_S / 8e6:.0f} MB/s"
            add(f"{what}: shipped over {SLOW_BITS_PER_S / 1e6:.0f} Mbit/s, {carried}", slow.mb_per_s, "MB/s")
            wrong = [*cut_often.wrong, *whole.wrong, *slow.wrong]
            add(f"{what}: files whose checksum is another, of {3 * len(checksums)}", len(wrong), "", 0)
            scp, sftp = by_scp(lab, kind, checksums), by_sftp(lab, kind, checksums)
            add(f"{what}: scp, without cuts", scp, "MB/s")
            add(f"{what}: paramiko's sftp, without cuts", sftp, "MB/s")
            add(f"{what}: shipped with cuts against scp without", cut_often.mb_per_s / scp, "times")
    return rows
