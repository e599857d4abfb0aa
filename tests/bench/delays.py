"""From the captures of a sender and a receiver to the one-way delay of each message; and how much memory it
takes to read a capture of one single flow, by its size.

The captures are made for it and deleted afterwards. Memory is the peak of a process of its own that does
nothing else (ru_maxrss: what is mapped and resident counts too).
"""

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow.compute as pc

from analysis.jobs import transfers
from analysis.jobs.extraction import MessagesTask, describe_captures, load_indices, open_table, plan_tasks
from analysis.jobs.work import ProcessPool
from experiments.records.json_files import read_json, write_json
from experiments.records.rundir import RunDirectory
from tests.bench.rows import Row, row
from tests.bench.traffic import PORT, Flow, events, write_capture

CAPTURE_BYTES = 1_000_000_000
DELAY_NS = 15_000_000
STREAMS = 4
EVENTS = 100  # in a message, of 10 bytes
SINGLE_FLOW_BYTES = (1_000_000_000, 4_000_000_000, 10_000_000_000)
SPARE_BYTES = 8_000_000_000
"""Disk space that stays free."""
TABLES = ("messages", "gaps", "decoding", "captures", "transfers")


def measure() -> list[Row]:
    """Make captures, measure, delete them. Needs 3 GB below the temporary directory, or 12 for all rows."""
    with tempfile.TemporaryDirectory(prefix="cutset-bench-") as folder:
        rows = _delays(RunDirectory(Path(folder) / "run"))
    for size in SINGLE_FLOW_BYTES:
        if shutil.disk_usage(tempfile.gettempdir()).free < size * 3 // 2 + SPARE_BYTES:
            break
        with tempfile.TemporaryDirectory(prefix="cutset-bench-") as folder:
            rows += _memory(RunDirectory(Path(folder) / "run"), size)
    return rows


def _delays(run: RunDirectory) -> list[Row]:
    flows = [
        Flow("10.0.0.2", PORT, "10.0.1.2", 42_000 + number, events(number, EVENTS, 10))
        for number in range(STREAMS)
    ]
    size = _write_run(run, flows, CAPTURE_BYTES)
    seconds = []
    for _ in range(2):
        for index in run.analysis.glob("*"):
            index.unlink() if index.is_file() else shutil.rmtree(index)
        for name in TABLES:
            run.table(name).mkdir()
        began = time.perf_counter()
        _extract(run)
        delays = transfers.read(run, columns=("t_sent_ns", "t_arrived_ns"))
        taken = pc.subtract(delays.column("t_arrived_ns"), delays.column("t_sent_ns"))
        seconds.append(time.perf_counter() - began)
    if pc.min_max(taken).as_py() != {"min": DELAY_NS, "max": DELAY_NS}:
        raise AssertionError(f"delays of {pc.min_max(taken)} where all are {DELAY_NS}")
    what = f"two captures of {size / 1e9:.1f} GB to the delays of {len(taken) / 1e6:.1f} M messages"
    return [
        row(what, 2 * size / min(seconds) / 1e6, "MB/s", 150),
        row("the same", min(seconds), "s"),
    ]


def _memory(run: RunDirectory, size: int) -> list[Row]:
    """Measure the sender's side alone: one flow, from the capture to the table of transfers."""
    size = _write_run(run, [Flow("10.0.0.2", PORT, "10.0.1.2", 42_000, events(0, EVENTS, 10))], size)
    began = time.perf_counter()
    command = [sys.executable, "-m", "tests.bench.delays", str(run.path)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    what = f"peak memory, one flow of {size / 1e9:.1f} GB to messages and transfers"
    return [
        row(what, int(said) / 1e6, "MB", "does not grow"),
        row("the same, one core", size / (time.perf_counter() - began) / 1e6, "MB/s"),
    ]


def _write_run(run: RunDirectory, flows: Sequence[Flow], size: int) -> int:
    """Write a sender and, for several flows, its receiver. Return a capture's size."""
    run.captures.mkdir(parents=True)
    run.analysis.mkdir()
    hosts = [
        {"name": f"r{number}-proxy-0", "address": f"10.0.{number}.2"} for number in range(min(len(flows), 2))
    ]
    probe = run.capture("probe.pcap")
    write_capture(probe, flows, 1)
    rounds = size // probe.stat().st_size
    probe.unlink()
    captures = []
    for number, host in enumerate(hosts):
        path = run.capture(f"{host['name']}-eth0.pcap")
        write_capture(path, flows, rounds, delay_ns=number * DELAY_NS)
        captures.append({"file": f"captures/{path.name}", "host": host["name"], "kernel_drops": 0})
    plan = {"system": "sprinkler", "parameters": {"port": PORT}, "hosts": hosts}
    write_json(run.run_json, {"schema": 2, "captures": captures, "plan": plan})
    return path.stat().st_size


@dataclass(frozen=True, slots=True)
class _Extract:
    """The messages of one capture, as workers take tasks."""

    task: MessagesTask
    folders: Mapping[str, Path]

    def run(self) -> None:
        self.task.run(self.folders)


def _extract(run: RunDirectory) -> None:
    """Everything from the capture files to the table of transfers, on all cores."""
    indices, unusable = load_indices(run)
    folders = {name: run.table(name) for name in TABLES}
    with open_table(folders["captures"] / "part-00000.parquet", "captures") as writer:
        writer.write_table(describe_captures(indices, unusable))
    wanted = [task for task in plan_tasks(run, indices) if isinstance(task, MessagesTask)]
    workers = ProcessPool.of_this_machine()
    workers.execute([_Extract(task, folders) for task in wanted], "extracting messages")
    hosts = {host["address"]: host["name"] for host in read_json(run.run_json)["plan"]["hosts"]}
    workers.execute(transfers.tasks(run, hosts, folders["transfers"]), "matching messages")


def main(folder: str) -> None:
    """Do it for one run, and print the peak of this process and of its children in bytes."""
    import resource

    run = RunDirectory(Path(folder))
    for name in TABLES:
        run.table(name).mkdir()
    _extract(run)
    peaks = [resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    sys.stdout.write(str(max(peaks) * 1024))


if __name__ == "__main__":
    main(*sys.argv[1:])
