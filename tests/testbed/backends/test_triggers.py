"""Faults that wait until something happens, in virtual time: right after it, every time the same."""

import pytest

from experiments.records.rundir import RunDirectory
from testbed.backends.ssh_hosts import SshBackend
from testbed.cli import main
from tests.plans import plan_of
from tests.virtual_runs import experiment_in, simulated
from topologies.errors import InputError

KILLED = """
name: triggered
topology: two-regions
system: sprinkler
roles: {proxy: 1, driver: 1, client: 2, configuration: 1}
workload: {event_size: 10B, rate: 20/s}
duration: 8s
captures: none
faults:
  - {name: kill, at: 1s, when: {process: r1/client-0, sends: VIEW, times: 3}, kill: r1/client-0}
  - {name: again, at: 6s, restart: r1/client-0}
"""


CUT = (
    KILLED.partition("faults:")[0]
    + """\
faults:
  - {name: cut, at: 1s, when: {process: r0/client-0, sends: VIEW, times: 2}, cut: [r0, r1]}
  - {name: mend, at: 6s, restore: cut}
"""
)


def simulated_run(tmp_path, text=KILLED):
    return simulated(experiment_in(tmp_path, text), tmp_path, seed=3).read_run()


@pytest.mark.slow
def test_a_triggered_fault_happens_right_after_its_trigger_in_every_run(tmp_path):
    one, other = simulated_run(tmp_path), simulated_run(tmp_path)
    killed = {change.fault: applied for change, applied in one.changes_applied}["kill"]
    since_s = (killed.applied_ns - one.times.zero_ns) / 1e9
    assert 1 < since_s < 6  # a client gossips once a second
    assert one.changes == other.changes
    times = [process.exit.time_ns for process in one.processes if process.name == "r1/client-0"]
    assert times[0] == killed.applied_ns


@pytest.mark.slow
def test_a_link_is_cut_both_ways_right_after_it_and_mended_at_its_time(tmp_path):
    record = simulated_run(tmp_path, CUT)
    times = {"cut": [], "mend": []}
    for change, applied in record.changes_applied:
        times[change.fault].append((applied.applied_ns - record.times.zero_ns) / 1e9)
    assert len(times["cut"]) == len(times["mend"]) == 2  # each way
    assert 1 < times["cut"][0] == times["cut"][1] < 6
    assert times["mend"] == pytest.approx([6, 6])


@pytest.mark.slow
def test_connections_are_reset_right_after_it(tmp_path):
    waits = "at: 1s, when: {process: r1/client-0, sends: VIEW, times: 3}, reset: r1/client-0"
    record = simulated_run(tmp_path, KILLED.partition("faults:")[0] + f"faults: [{{name: reset, {waits}}}]\n")
    [(change, applied)] = record.changes_applied
    assert (change.action, change.process) == ("reset", "r1/client-0")
    assert 1 < (applied.applied_ns - record.times.zero_ns) / 1e9 < 6


@pytest.mark.slow
def test_a_trigger_after_the_restore_cuts_nothing(tmp_path):
    text = CUT.replace("at: 6s, restore", "at: 1100ms, restore").replace("times: 2", "times: 4")
    record = simulated_run(tmp_path, text)
    assert "cut" not in {change.fault for change, _ in record.changes_applied}


APART = CUT.replace("cut: [r0, r1]", "separate: r0/client-0, from: [r0/proxy-0, r0/client-1]")


@pytest.mark.slow
def test_processes_are_kept_apart_right_after_it_and_meet_again_at_its_time(tmp_path):
    record = simulated_run(tmp_path, APART)
    times = {"cut": set(), "mend": set()}
    for change, applied in record.changes_applied:
        times[change.fault].add((change.process, (applied.applied_ns - record.times.zero_ns) / 1e9))
    [begun_s] = {time_s for _, time_s in times["cut"]}
    assert 1 < begun_s < 6
    assert {process for process, _ in times["cut"]} == {"r0/client-0", "r0/proxy-0", "r0/client-1"}
    assert times["mend"] == {(process, 6.0) for process, _ in times["cut"]}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("begun", "ended"),
    [
        ("separate: r0/client-0, from: [r0/proxy-0, r0/client-1]", "restore: cut"),
        ("stop: r0/client-0", "continue: r0/client-0"),
    ],
)
def test_a_trigger_after_the_repair_does_nothing(tmp_path, begun, ended):
    text = CUT.replace("cut: [r0, r1]", begun).replace("at: 6s, restore: cut", f"at: 1100ms, {ended}")
    record = simulated_run(tmp_path, text.replace("times: 2", "times: 4"))
    assert record.outcome == "completed"
    assert "cut" not in {change.fault for change, _ in record.changes_applied}
    assert record.times.drained_ns is not None


def test_nothing_else_keeps_the_same_two_apart_meanwhile(tmp_path):
    also = "  - {name: deaf, at: 5s, for: 500ms, separate: r0/client-1, from: [r0/client-0]}\n"
    with pytest.raises(InputError, match=r"cut waits, and deaf keeps r0/client-. from r0/client-. meanwhile"):
        simulated_run(tmp_path, APART + also)
    assert simulated_run(tmp_path, APART + also.replace("from: [r0/client-0]", "from: [r0/proxy-0]"))


def test_nothing_else_is_done_to_a_link_while_its_fault_waits(tmp_path):
    also = "  - {name: slow, at: 5s, for: 500ms, set: [r1, r0], direction: forward, delay: 90ms}\n"
    with pytest.raises(InputError, match="cut waits, and slow changes r0-r1 meanwhile"):
        simulated_run(tmp_path, CUT + also)
    assert simulated_run(tmp_path, CUT + also.replace("at: 5s", "at: 6s"))


@pytest.mark.slow
def test_without_its_trigger_a_fault_never_happens(tmp_path):
    record = simulated_run(tmp_path, KILLED.replace("times: 3", "times: 1000"))
    assert "kill" not in {change.fault for change, _ in record.changes_applied}


@pytest.mark.parametrize(
    ("text", "old", "new", "said"),
    [
        (CUT, "cut: [r0, r1]}", "cut: [r0, r1], for: 2s}", "end it by a restore"),
        (CUT, "cut: [r0, r1]}", "cut: [r0, r9]}", "has no region r9"),
        (CUT, "sends: VIEW", "sends: VEIW", "did you mean VIEW?"),
        (KILLED, "VIEW", "VEIW", "there is no message VEIW: did you mean VIEW?"),
        (KILLED, "process: r1/client-0", "process: r7/client-0", "there is no process r7/client-0"),
        (KILLED, "at: 1s, when: {process: r1/client-0, sends: VIEW, times: 3}, ", "", "is missing"),
        (KILLED, "times: 3", "times: 0", "greater"),
    ],
)
def test_errors_of_a_trigger_are_one_line(tmp_path, text, old, new, said):
    with pytest.raises(InputError, match="faults") as error:
        experiment_in(tmp_path, text.replace(old, new))
    assert said in str(error.value)


@pytest.mark.network
def test_a_real_process_stands_still_until_it_is_done(tmp_path):
    """Killed by itself; another one stopped, after which it goes on; a link cut; one kept from a proxy."""
    stopped = """
  - {name: stop, at: 1s, when: {process: r0/client-0, sends: VIEW}, stop: r0/client-1}
  - {name: go-on, at: 6s, continue: r0/client-1}
  - {name: cut, at: 2s, when: {process: r0/client-0, sends: VIEW}, cut: [r0, r1]}
  - {name: mend, at: 5s, restore: cut}
  - {name: deaf, at: 2s, when: {process: r1/client-1, sends: VIEW}, separate: r1/client-1, from: [r1/proxy-0]}
  - {name: heard, at: 5s, restore: deaf}
"""
    file = tmp_path / "triggered.yaml"
    file.write_text(KILLED + stopped)
    assert main.run(["run", str(file), "--out", str(tmp_path), "--no-analyze"]) == 0
    (run,) = (RunDirectory(path.parent) for path in tmp_path.glob("*/run.json"))
    record = run.read_run()
    changes_applied = {change.fault: applied for change, applied in record.changes_applied}
    assert set(changes_applied) == {"kill", "again", "stop", "go-on", "cut", "mend", "deaf", "heard"}
    for name in ("kill", "stop", "cut", "deaf"):
        late_ns = changes_applied[name].applied_ns - changes_applied[name].requested_ns
        assert 0 <= late_ns < 1_000_000_000
    ends = {process.name: process.exit for process in record.processes}
    assert ends["r0/client-0"].code == 0  # it went on: who stands still in the end is killed
    assert all(end.expected for end in ends.values())


def test_machines_of_an_inventory_refuse_it_in_one_line(tmp_path):
    plan = plan_of(experiment_in(tmp_path, KILLED))
    with pytest.raises(InputError, match="kill waits for a message") as error:
        SshBackend.adapted(None, plan)
    assert "\n" not in str(error.value)
