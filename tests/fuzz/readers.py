"""Fuzzer targets for readers of untrusted files other than captures: each takes bytes, and refuses them with
an InputError (or, in the analysis, an AnalysisError) or reads them.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import zstandard

from analysis.errors import AnalysisError
from analysis.history.metrics import headline
from analysis.pages.report.charts.bands import bands
from analysis.pages.report.recovery import recoveries
from analysis.pages.report.run_reader import AnalysedRun
from analysis.pages.report.story import story
from analysis.timelines.delivery.delivery_records import RECORD, read_files
from analysis.timelines.links.traversals import traversals
from analysis.timelines.machine_health import machine_problems
from analysis.timelines.run_metadata import read_metadata
from experiments.archives.unpacking import unpacked
from experiments.campaigns.sweepdir import SweepDirectory
from experiments.records.json_files import parse_json
from experiments.records.run_record import RunRecord, record_from_json, record_from_text, record_to_json
from experiments.records.summary_file import check_summary
from node.core.deliveries import HEADER
from testbed.machines.inventory import load_inventory
from tests.run_json import SMALL
from topologies.errors import InputError

MEMORY = Path("/dev/shm")  # a file system in memory, where there is one


def run(content: bytes) -> None:
    """Read a run.json: the result must be consistent and read back."""
    with suppress(InputError):
        record = record_from_text(content)
        metadata = read_metadata(record)
        machine_problems(record, metadata)
        traversals(record.plan)
        bands(AnalysedRun(record, {}, (), (), (), (), ()))
        assert record_from_json(record_to_json(record)) == record


def summary(content: bytes) -> None:
    """Read a summary.json: the first screen, and the figures that nights follow."""
    with suppress(InputError):
        found = check_summary(parse_json(content, "summary.json"), "summary.json")
        headline(found)
        record = AnalysedRun(RunRecord(SMALL), found, (), (), (), (), ())
        story(record)
        recoveries(record)


def sweep(content: bytes) -> None:
    """Read a sweep.json."""
    with temporary_file("sweep.json", content) as path, suppress(InputError):
        record = SweepDirectory(path.parent).read()
        names = [run.name for run in record.runs]
        assert len(set(names)) == len(names)
        assert not any("/" in name or name in {"", ".", ".."} for name in names)


def archive(content: bytes) -> None:
    """Unpack an archive, as it is or compressed first (an even first byte); it must stay in its folder."""
    packed = content[1:] if content[:1] and content[0] % 2 else zstandard.compress(content[1:])
    with temporary_file("run.tar.zst", packed) as path:
        runs = path.parent / "runs"
        with suppress(InputError):
            place, made = unpacked(path, runs)
            assert made
            assert place.parent == runs
        assert not list(runs.glob(".unpacking-*"))
        assert {each.name for each in path.parent.iterdir()} <= {"run.tar.zst", "runs"}
        assert not any(each.is_symlink() for each in runs.rglob("*"))


def deliveries(content: bytes) -> None:
    """Read a delivery log."""
    with temporary_file("r0-client-0.deliveries", content) as path, suppress(AnalysisError):
        rows = read_files([("r0-client-0", path)])
        rows.validate(full=True)
        assert rows.num_rows == max(0, len(content) - HEADER.size) // RECORD.itemsize


def inventory(content: bytes) -> None:
    """Read an inventory."""
    with temporary_file("lab.yaml", content) as path, suppress(InputError):
        found = load_inventory(path)
        names = [machine.name for machine in found.machines]
        assert len(set(names)) == len(names) > 0


@contextmanager
def temporary_file(name: str, content: bytes) -> Iterator[Path]:
    """Yield a file with this content; its folder is removed afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="cutset-fuzz-", dir=MEMORY if MEMORY.is_dir() else None))
    try:
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        yield path
    finally:
        shutil.rmtree(folder)
