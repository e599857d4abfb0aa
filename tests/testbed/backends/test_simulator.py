"""A run in virtual time leaves the run directory of a real run, the same for the same seed."""

import json
import signal
from contextlib import suppress

import pytest

from experiments.records.json_files import read_json
from experiments.records.rundir import RunDirectory
from node.core.deliveries import RecordKind, read_records
from testbed.backends.simulated_files import EPOCH_NS
from testbed.backends.simulator import simulate
from tests.virtual_runs import experiment_in, prepared, simulated

EXPERIMENT = """
topology: three-regions
roles: {{proxy: 1, driver: 1, client: 2}}
workload: {{event_size: 10B, rate: 1000/s}}
duration: 3s
faults: {faults}
expect: [events.lost == 0]
"""
FAULTS = """
  - {name: cut, at: 500ms, cut: [r0, r1], direction: forward}
  - {name: heal, at: 1s, restore: [r0, r1]}
  - {name: slow, at: 1200ms, set: [r1, r2], delay: 60ms}
  - {name: kill, at: 1s, kill: r2/client-1}
  - {name: again, at: 2s, restart: r2/client-1}
  - {name: stop, at: 1s, stop: r1/client-0}
  - {name: go-on, at: 1500ms, continue: r1/client-0}
"""


@pytest.fixture(scope="module")
def run_simulated(tmp_path_factory):
    """Return a function that runs an experiment with faults and returns directory and messages."""

    def run(faults="[]", seed=1):
        folder, told = tmp_path_factory.mktemp("virtual"), []
        experiment = experiment_in(folder, EXPERIMENT.format(faults=faults))
        return simulated(experiment, folder, seed=seed, follow=told.append), told

    return run


@pytest.fixture(scope="module")
def undisturbed(run_simulated):
    return run_simulated()


@pytest.fixture(scope="module")
def disturbed(run_simulated):
    return run_simulated(FAULTS)


def content(directory: RunDirectory) -> dict[str, bytes]:
    """Return the content of all files that nodes write."""
    files = [*directory.deliveries.iterdir(), *directory.logs.iterdir()]
    return {file.name: file.read_bytes() for file in files}


def records(directory, host, kind):
    found, torn = read_records(directory.host_deliveries(host).read_bytes())
    assert torn == 0
    return [record for record in found if record.kind == kind]


def test_a_run_directory_is_like_that_of_a_real_run(undisturbed):
    directory, told = undisturbed
    run = read_json(directory.run_json)
    assert (run["phase"], run["outcome"], run["links"]) == ("collected", "completed", "simulator")
    assert run["problems"] == run["changes"] == run["captures"] == []
    names = ("started_ns", "ready_ns", "zero_ns", "stopped_ns", "drained_ns", "ended_ns")
    lines = [json.loads(line) for line in directory.log("r0-proxy-0").read_text().splitlines()]
    assert min(line["t_ns"] for line in lines) >= EPOCH_NS
    times = [run["times"][name] for name in names]
    assert times == sorted(times)
    assert times[0] == EPOCH_NS
    assert run["times"]["stopped_ns"] - run["times"]["zero_ns"] == 3 * 10**9
    assert all(process["exit"]["expected"] for process in run["processes"])
    phases = [message["phase"] for message in told if message["did"] == "phase"]
    assert phases == ["building", "running", "draining", "collected"]


def test_events_of_dead_publishers_are_awaited_and_an_impossible_change_is_a_problem(run_simulated):
    killed = "".join(f"\n  - {{at: 2500ms, kill: r{number}/driver-0}}" for number in range(3))
    again = "\n  - {at: 2s, kill: r2/client-1}\n  - {at: 2999ms, restart: r2/client-1}"
    first = "{when: {process: r0/proxy-0, sends: ADVERTISEMENT}, kill: r0/client-0}"
    twice = f"\n  - {first}\n  - {{name: more, at: 2s, kill: r0/client-0}}"
    directory, _ = run_simulated(killed + again + twice)
    published, got = (
        max(
            record.first_seq + record.count for record in records(directory, host, kind) if record.stream == 0
        )
        for host, kind in (("r0-driver-0", RecordKind.PUBLISHED), ("r2-client-1", RecordKind.DELIVERED))
    )
    assert got >= published > 2_000
    run = read_json(directory.run_json)
    assert run["outcome"] == "completed"
    assert sum(change["applied_ns"] is None for change in run["changes"]) == 1
    assert any("more" in problem for problem in run["problems"])


def test_clients_get_what_drivers_published_with_the_same_crcs(undisturbed):
    directory, _ = undisturbed
    for number in range(3):
        published = records(directory, f"r{number}-driver-0", RecordKind.PUBLISHED)
        assert sum(record.count for record in published) == pytest.approx(
            3_000, abs=60
        )  # a batch of 50 ms may be open at the end
        for client in ("r0-client-0", "r1-client-1"):
            got = [
                record
                for record in records(directory, client, RecordKind.DELIVERED)
                if record.stream == number
            ]
            crcs = [(record.first_seq, record.batch_crc, record.running_crc) for record in got]
            assert crcs == [(each.first_seq, each.batch_crc, each.running_crc) for each in published]


def test_faults_are_applied_on_time_and_no_event_is_lost(disturbed):
    directory, told = disturbed
    run = read_json(directory.run_json)
    assert run["outcome"] == "completed"
    assert "drained_ns" in run["times"]
    zero_ns = run["times"]["zero_ns"]
    done = [
        (run["plan"]["changes"][change["index"]]["fault"], (change["applied_ns"] - zero_ns) // 10**6)
        for change in run["changes"]
    ]
    assert ("cut", 500) in done
    assert ("slow", 1200) in done
    assert ("again", 2000) in done
    assert [message["fault"] for message in told if message["did"] == "change"] == [name for name, _ in done]
    lives = [process for process in run["processes"] if process["name"] == "r2/client-1"]
    assert [life["exit"]["signal"] for life in lives] == [9, None]
    assert len(records(directory, "r2-client-1", RecordKind.SESSION)) == 2


@pytest.mark.slow
def test_the_same_seed_gives_the_same_files_and_another_one_does_not(disturbed, run_simulated):
    runs = (disturbed, run_simulated(FAULTS), run_simulated(FAULTS, seed=2))
    same, again, other = (content(directory) for directory, _ in runs)
    assert same == again
    assert same != other


def test_ctrl_c_leaves_partial_results_also_where_python_drops_the_interrupt(tmp_path):
    directory = prepared(experiment_in(tmp_path, EXPERIMENT.format(faults="[]")), tmp_path)
    handler = signal.getsignal(signal.SIGINT)

    def follow(message):
        if message["did"] == "phase" and message["phase"] == "draining":
            with suppress(KeyboardInterrupt):  # as in the callback of a weak reference
                signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        simulate(directory, follow)
    assert read_json(directory.run_json)["outcome"] == "interrupted"
    assert records(directory, "r0-client-0", RecordKind.DELIVERED)
    assert signal.getsignal(signal.SIGINT) is handler
