"""The cost of a complete analysis of 0.2 to 20 GB of captures: time, and memory of driver, Java and worker.

The runs are synthetic (`traffic.write_run`) and deleted afterwards; the largest has 10^9 delivered events
and, with its tables, needs 25 GB below the temporary directory. In addition, a query on one capture, in SQL
and by hand with tshark.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from tests.bench.rows import Row, row
from tests.bench.traffic import write_run

ROUNDS = (2_800, 28_000, 280_000)
BATCH, EVENT_BYTES = 112, 4
ASKED_MIB = {"driver": 1536.0, "worker": 2048.0}
LOOK_S = 0.1
CUTSET = Path(sys.executable).with_name("cutset")
CAPTURE = "r0-client-0-eth0"
QUESTION = "SELECT count(*), sum(wire_length) FROM packets WHERE capture = '{}' AND payload_length > 400"
FILTER = "tcp.len > 400"


def measure() -> list[Row]:
    """Make runs, analyse them, ask, delete them."""
    rows: list[Row] = []
    for rounds in ROUNDS:
        with tempfile.TemporaryDirectory(prefix="cutset-bench-") as folder:
            run = Path(folder) / "run"
            write_run(run, rounds, event_bytes=EVENT_BYTES, batch=BATCH)
            rows += _analysed(run)
            if rounds != ROUNDS[-1]:
                rows += _asked(run)
    return rows


def _analysed(run: Path) -> list[Row]:
    size = sum(path.stat().st_size for path in (run / "captures").glob("*.pcap"))
    began_s, most = time.monotonic(), dict.fromkeys(("driver", "java", "worker"), 0)
    with psutil.Popen([CUTSET, "analyze", run], stdout=sys.stderr) as process:
        while process.poll() is None:
            for role, held in _held(process):
                most[role] = max(most[role], held)
            time.sleep(LOOK_S)
    seconds = time.monotonic() - began_s
    with_spark_s = _seconds([str(CUTSET), "analyze", str(run), "--master", "local[*]"])
    name = f"{size / 1e9:.1f} GB"
    return [
        row(f"{name}: cutset analyze", seconds, "s"),
        row(f"{name}: the time with Spark / ours", with_spark_s / seconds, "times"),
        row(f"{name}: captures a second", size / seconds / 1e9, "GB/s"),
        *(
            row(f"{name}: memory, {role}", held / 2**20, "MiB", ASKED_MIB.get(role))
            for role, held in most.items()
        ),
    ]


def _own_bytes(process: psutil.Process) -> int:
    """Return the PSS of one process; 0 if it has ended."""
    try:
        rollup = Path(f"/proc/{process.pid}/smaps_rollup").read_text()
        return next(int(line.split()[1]) << 10 for line in rollup.splitlines() if line[:4] == "Pss:")
    except (OSError, StopIteration):
        return 0


def _held(process: psutil.Process) -> list[tuple[str, int]]:
    """Return the role and memory in bytes of each existing process."""
    found = [("driver", _own_bytes(process))]
    try:
        for child in process.children(recursive=True):
            found.append(("java" if child.name() == "java" else "worker", _own_bytes(child)))
    except psutil.Error:  # it has ended
        pass
    return found


def _asked(run: Path) -> list[Row]:
    """Beside each other: seconds from the shell's point of view."""
    capture = run / "captures" / f"{CAPTURE}.pcap"
    ours = _seconds([str(CUTSET), "sql", str(run), QUESTION.format(CAPTURE)])
    by_hand = _seconds(["tshark", "-n", "-r", str(capture), "-Y", FILTER, "-T", "fields", "-e", "frame.len"])
    what = f"a question about one capture of {capture.stat().st_size / 1e6:.0f} MB"
    return [
        row(f"{what}: cutset sql", ours, "s"),
        row(f"{what}: tshark -Y", by_hand, "s"),
        row(f"{what}: tshark's time / ours", by_hand / ours, "times"),
    ]


def _seconds(command: list[str]) -> float:
    began_s = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.monotonic() - began_s
