"""Faults that wait until something happens, in virtual time: right after it, every time the same."""

import pytest

from experiments.loader import read_experiment
from testbed.backends.backend import LocalBackend
from testbed.backends.simulator import simulate
from testbed.planning import make_plan
from testbed.runner.run_control import prepare
from topologies.errors import InputError
from topologies.loader import load_topology

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


def written(tmp_path, text=KILLED):
    file = tmp_path / "triggered.yaml"
    file.write_text(text)
    return file


def carried_out(tmp_path, text=KILLED):
    experiment = read_experiment(str(written(tmp_path, text))).experiment
    plan = make_plan(experiment, load_topology(experiment.topology), seed=3, links_kind="auto")
    run = prepare(tmp_path, plan, {"experiment": experiment.model_dump(mode="json"), "topology": {}})
    simulate(run, lambda _: None)
    return run.read_run()


@pytest.mark.slow
def test_it_happens_right_after_what_it_waits_for_and_every_time_then(tmp_path):
    one, other = carried_out(tmp_path), carried_out(tmp_path)
    killed = {change.fault: applied for change, applied in one.carried_out}["kill"]
    since_s = (killed.applied_ns - one.times.zero_ns) / 1e9
    assert 1 < since_s < 6  # a client gossips once a second
    assert one.changes == other.changes
    times = [process.exit.time_ns for process in one.processes if process.name == "r1/client-0"]
    assert times[0] == killed.applied_ns


@pytest.mark.slow
def test_what_never_happens_is_never_done(tmp_path):
    record = carried_out(tmp_path, KILLED.replace("times: 3", "times: 1000"))
    assert "kill" not in {change.fault for change, _ in record.carried_out}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("VIEW", "VEIW", "there is no message VEIW: did you mean VIEW?"),
        ("process: r1/client-0", "process: r7/client-0", "there is no process r7/client-0"),
        ("at: 1s, when: {process: r1/client-0, sends: VIEW, times: 3}, ", "", "is missing"),
        ("times: 3", "times: 0", "greater"),
    ],
)
def test_what_is_wrong_with_it_is_one_line(tmp_path, old, new, said):
    with pytest.raises(InputError, match="faults") as error:
        read_experiment(str(written(tmp_path, KILLED.replace(old, new))))
    assert said in str(error.value)


def test_real_processes_refuse_it_in_one_line(tmp_path):
    experiment = read_experiment(str(written(tmp_path))).experiment
    plan = make_plan(experiment, load_topology(experiment.topology), seed=3, links_kind="auto")
    with pytest.raises(InputError, match="kill waits for what only virtual time can tell"):
        LocalBackend().adapted(plan)
