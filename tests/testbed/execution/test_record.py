"""run.json during a run."""

import asyncio
import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from experiments.files.whole_files import write_whole
from experiments.records.observations import CpuSample
from experiments.records.run_record import RunPhase
from experiments.records.rundir import RunDirectory
from testbed.execution import record as record_module
from testbed.execution.record import RunRecordWriter
from tests.run_json import set_run


@pytest.fixture
def told():
    return []


@pytest.fixture
def record(tmp_path, told):
    run = RunDirectory(tmp_path)
    set_run(run)
    made = RunRecordWriter(run, told.append)
    yield made
    made.close()
    assert [file.name for file in tmp_path.iterdir()] == ["run.json"]


def on_disk(record: RunRecordWriter) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(record.directory.run_json.read_text())
    return content


def test_a_repeated_problem_is_reported_once(record, told):
    for _ in range(3):
        record.problem("the disk is slow")
    record.save()
    assert on_disk(record)["problems"] == ["the disk is slow"]
    assert told == [{"did": "problem", "text": "the disk is slow"}]


def test_updates_during_a_write_do_not_tear_the_record(record):
    async def work() -> None:
        writing = asyncio.create_task(record.save_aside())
        await asyncio.sleep(0)
        for number in range(100):
            record.note(cpu=(*record.content.cpu, CpuSample(number, 0.5)))
        await writing
        assert len(on_disk(record)["cpu"]) in range(101)
        await record.save_aside()

    asyncio.run(work())
    assert len(on_disk(record)["cpu"]) == 100


def test_a_full_disk_uses_the_reserve_and_keeps_the_record(record, monkeypatch):
    reserve = record._reserve
    assert os.fstat(reserve.fileno()).st_blocks * 512 >= record_module.RESERVE_BYTES
    assert [path.name for path in record.directory.path.glob(".*")] == []  # a killed runner leaves none

    def write_if_there_is_room(path: Path, text: str) -> None:
        if not reserve.closed:
            raise OSError(errno.ENOSPC, "No space left on device")
        write_whole(path, text)

    monkeypatch.setattr(record_module, "write_whole", write_if_there_is_room)
    record.phase(RunPhase.COLLECTED)
    assert on_disk(record)["phase"] == "collected"
