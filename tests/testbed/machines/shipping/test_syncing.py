"""Data is synced to this machine's disk before a machine may delete it."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from testbed.machines.shipping.result import ShippingState
from tests.testbed.machines.shipping.machines import Machine, ship_all, write_files

FILES = {"captures/a.pcap": b"packets", "storage/r0/log/1": b"kept", "logs/r0.jsonl": b"", "run.json": b"{}"}
PLACES = ["captures/a.pcap", "storage/r0/log/1", "logs/r0.jsonl", "machines/h0/run.json"]


def test_files_and_folders_are_synced_before_a_machine_counts_as_shipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsync, happened = os.fsync, []

    def recording(descriptor: int) -> None:
        happened.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        fsync(descriptor)

    def listen(progress: dict[str, Any]) -> None:
        if progress["state"] == ShippingState.SHIPPED:
            happened.append("shipped")

    monkeypatch.setattr(os, "fsync", recording)
    run = tmp_path / "run"
    machine = Machine("h0", write_files(tmp_path / "h0", FILES))
    assert ship_all(run, machine, listener=listen)["h0"].complete
    synced = happened[: happened.index("shipped")]
    files = [str(run / destination) for destination in PLACES]
    folders = [run / name for name in ("captures", "storage/r0/log", "storage/r0", "storage", "logs")]
    assert sorted(synced[: len(files)]) == sorted(files), "content first, then the names"
    assert {*map(str, folders), str(run / "machines/h0"), str(run), str(tmp_path)} <= {*synced[len(files) :]}


def test_a_machine_whose_files_cannot_be_synced_is_not_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", broken)
    shipped = ship_all(tmp_path / "run", Machine("h0", write_files(tmp_path / "h0", FILES)))["h0"]
    assert not shipped.complete, "its folder would be removed"
    assert shipped.lines() == ["h0: its files cannot be synced to the disk: Input/output error"]
