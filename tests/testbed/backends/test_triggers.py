"""Faults that wait for a message take effect right after it, in virtual time and on real processes."""

from pathlib import Path

import pytest

from experiments.records.run_record import RunRecord
from experiments.records.rundir import RunDirectory
from testbed.backends.ssh_hosts import SshBackend
from testbed.cli import main
from tests.plans import plan_of
from tests.virtual_runs import experiment_in, simulated, written
from topologies.errors import InputError

BASE = """
roles: {proxy: 1, driver: 1, client: 2, configuration: 1}
workload: {event_size: 10B, rate: 20/s}
duration: 8s
faults:
"""
KILLED = (
    BASE
    + """\
  - {name: kill, at: 1s, when: {process: r1/client-0, sends: VIEW, times: 3}, kill: r1/client-0}
  - {name: again, at: 6s, restart: r1/client-0}
"""
)
CUT = (
    BASE
    + """\
  - {name: cut, at: 1s, when: {process: r0/client-0, sends: VIEW, times: 2}, cut: [r0, r1]}
  - {name: mend, at: 6s, restore: cut}
"""
)
APART = CUT.replace("cut: [r0, r1]", "separate: r0/client-0, from: [r0/proxy-0, r0/client-1]")
MANY = (
    KILLED
    + """\
  - {name: reset, at: 1s, when: {process: r1/client-1, sends: VIEW}, reset: r1/client-1}
  - {name: stop, at: 1s, when: {process: r0/client-0, sends: VIEW}, stop: r0/client-1}
  - {name: go-on, at: 6s, continue: r0/client-1}
  - {name: cut, at: 2s, when: {process: r0/client-0, sends: VIEW}, cut: [r0, r1]}
  - {name: mend, at: 5s, restore: cut}
  - {name: deaf, at: 2s, when: {process: r1/client-1, sends: VIEW}, separate: r1/client-1, from: [r1/proxy-0]}
  - {name: heard, at: 5s, restore: deaf}
"""
)
"""A process killed by its own message; another stopped; connections reset; a link cut; two kept apart."""
WAITING = {"kill", "reset", "stop", "cut", "deaf"}
TOO_LATE = (
    BASE
    + """\
  - {name: never, at: 1s, when: {process: r1/client-0, sends: VIEW, times: 1000}, kill: r1/client-0}
  - {name: stop, at: 1s, when: {process: r0/client-0, sends: VIEW, times: 4}, stop: r0/client-1}
  - {name: go-on, at: 1100ms, continue: r0/client-1}
  - {name: cut, at: 1s, when: {process: r0/client-0, sends: VIEW, times: 4}, cut: [r0, r1]}
  - {name: mend, at: 1100ms, restore: cut}
  - {name: deaf, at: 1s, when: {process: r1/client-1, sends: VIEW, times: 4}, separate: r1/client-1,
     from: [r1/proxy-0]}
  - {name: heard, at: 1100ms, restore: deaf}
"""
)


def run_on(backend: str, folder: Path, text: str) -> RunRecord:
    if backend == "simulator":
        return simulated(experiment_in(folder, text), folder, seed=3).read_run()
    file = written(folder, text)
    assert main.run(["run", str(file), "--out", str(folder), "--no-analyze"]) == 0
    (run,) = (RunDirectory(path.parent) for path in folder.glob("*/run.json"))
    return run.read_run()


@pytest.mark.parametrize("on", [pytest.param("local", marks=pytest.mark.network), "simulator"])
def test_a_fault_happens_right_after_its_trigger_and_ends_at_its_time(on: str, tmp_path: Path) -> None:
    record = run_on(on, tmp_path, MANY)
    zero_ns = record.times.zero_ns or 0
    times_s: dict[str, set[float]] = {}
    for change, applied in record.changes_applied:
        assert applied.applied_ns is not None
        assert 0 <= applied.applied_ns - applied.requested_ns < 1_000_000_000
        times_s.setdefault(change.fault, set()).add((applied.applied_ns - zero_ns) / 1e9)
    assert times_s.keys() == WAITING | {"again", "go-on", "mend", "heard"}
    assert all(1 < min(times_s[name]) < 6 for name in WAITING)  # a client gossips once a second
    ends = {process.name: process.exit for process in record.processes}
    assert ends["r0/client-1"].code == 0  # it went on: a process that is stopped at the end is killed
    assert all(end.expected for end in ends.values())
    if on == "simulator":
        assert [len(times_s[name]) for name in sorted(WAITING)] == [1] * len(WAITING), "both ways at once"
        assert (times_s["mend"], times_s["heard"], times_s["again"]) == ({5.0}, {5.0}, {6.0})
        killed = [process.exit for process in record.processes if process.name == "r1/client-0"]
        assert {(killed[0].time_ns - zero_ns) / 1e9} == times_s["kill"]


def test_a_trigger_that_never_fires_or_fires_after_the_repair_has_no_effect(tmp_path: Path) -> None:
    record = run_on("simulator", tmp_path, TOO_LATE)
    assert record.outcome == "completed"
    assert not {change.fault for change, _ in record.changes_applied} & {"never", "stop", "cut", "deaf"}
    assert record.times.drained_ns is not None


@pytest.mark.parametrize(
    ("text", "also", "harmless", "said"),
    [
        (
            APART,
            "{name: deaf, at: 5s, for: 500ms, separate: r0/client-1, from: [r0/client-0]}",
            ("from: [r0/client-0]", "from: [r0/proxy-0]"),
            r"cut waits, and deaf keeps r0/client-. from r0/client-. meanwhile",
        ),
        (
            CUT,
            "{name: slow, at: 5s, for: 500ms, set: [r1, r0], direction: forward, delay: 90ms}",
            ("at: 5s", "at: 6s"),
            "cut waits, and slow changes r0-r1 meanwhile",
        ),
    ],
    ids=["the same processes", "the same link"],
)
def test_no_other_fault_may_act_on_the_target_of_a_waiting_fault(
    tmp_path: Path, text: str, also: str, harmless: tuple[str, str], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        plan_of(experiment_in(tmp_path, f"{text}  - {also}\n"))
    assert plan_of(experiment_in(tmp_path, f"{text}  - {also.replace(*harmless)}\n"))


@pytest.mark.parametrize(
    ("text", "old", "new", "said"),
    [
        (CUT, "cut: [r0, r1]}", "cut: [r0, r1], for: 2s}", "end it by a restore"),
        (CUT, "cut: [r0, r1]}", "cut: [r0, r9]}", "has no region r9"),
        (KILLED, "VIEW", "VEIW", "there is no message VEIW: did you mean VIEW?"),
        (KILLED, "process: r1/client-0", "process: r7/client-0", "there is no process r7/client-0"),
        (KILLED, "at: 1s, when: {process: r1/client-0, sends: VIEW, times: 3}, ", "", "is missing"),
        (KILLED, "times: 3", "times: 0", "greater"),
    ],
)
def test_errors_of_a_trigger_are_one_line(tmp_path: Path, text: str, old: str, new: str, said: str) -> None:
    with pytest.raises(InputError, match="faults") as error:
        experiment_in(tmp_path, text.replace(old, new))
    assert said in str(error.value)


def test_machines_of_an_inventory_refuse_triggers(tmp_path: Path) -> None:
    plan = plan_of(experiment_in(tmp_path, KILLED))
    with pytest.raises(InputError, match="kill waits for a message"):
        SshBackend.adapted(None, plan)
