"""Keys that programs logged are collected into one file, each once, readable by its owner alone."""

import stat
from dataclasses import replace

import pytest

from experiments.declared import Declared
from experiments.planned.plan import Plan, ProcessPlan
from experiments.records.rundir import RunDirectory
from node.core.declaration import Marked, Seen
from testbed.capturing import key_logs
from testbed.capturing.key_logs import collect_key_logs
from tests.run_json import SMALL


def line(number: int) -> bytes:
    return b"CLIENT_RANDOM " + bytes([number]).hex().encode() * 32 + b" " + b"cd" * 48 + b"\n"


def plan(seen: Seen = "tls") -> Plan:
    processes = tuple(ProcessPlan(f"r0/broker-{n}", f"r0-broker-{n}", "r0", "broker", n, 1) for n in (0, 1))
    return replace(
        SMALL, processes=processes, declared=Declared("relay", {"broker": ("server",)}, marked=Marked(seen))
    )


@pytest.fixture
def run(tmp_path):
    found = RunDirectory(tmp_path / "run")
    found.make()
    for host, lives in (("r0-broker-0", (line(1) + line(2),)), ("r0-broker-1", (line(2), line(3)))):
        place = found.program_key_log(host)
        place.parent.mkdir(parents=True)
        for number, lived in enumerate(lives):
            (place.with_name(f"tls-keys-{number}.log") if number else place).write_bytes(lived)
    return found


def test_keys_of_all_programs_and_process_generations_are_collected(run):
    assert collect_key_logs(plan(), run) == []
    assert sorted(run.key_log.read_bytes().splitlines(keepends=True)) == [line(1), line(2), line(3)]
    assert stat.S_IMODE(run.key_log.stat().st_mode) == 0o600
    assert not list(run.path.glob("programs/*/*"))


def test_keys_are_collected_only_if_programs_must_log_them(run):
    assert collect_key_logs(plan("clear"), run) == []
    assert not run.key_log.exists()


def test_without_keys_no_file_is_made(run):
    for host in ("r0-broker-0", "r0-broker-1"):
        for path in run.program_key_logs(host):
            path.write_bytes(b"")
    assert collect_key_logs(plan(), run) == []
    assert not run.key_log.exists()


def test_too_many_are_cut_off_and_that_is_reported(run, monkeypatch):
    monkeypatch.setattr(key_logs, "KEY_LOG_BYTES_MAX", 2 * len(line(1)))
    [problem] = collect_key_logs(plan(), run)
    assert problem.startswith("not all keys of TLS connections were kept")
    assert run.key_log.read_bytes().count(b"\n") == 2
