"""The tests' own systems, known only while one of these tests runs; and runs with planted defects."""

from pathlib import Path

import pytest

from experiments.loader import load_experiment
from node import systems
from node.systems import build_machine
from tests.virtual_runs import missed, simulated, summary_of

MODULE = Path(__file__).with_name("topic_broker.py")
EXCHANGE = Path(__file__).with_name("exchange.py")
PEERS = Path(__file__).with_name("peers.py")
WRONG = ("lost", "stray", "duplicated", "out_of_order", "resurrected", "corrupted", "published_twice")


@pytest.fixture(autouse=True)
def broker_module(monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(systems.MODULES_VARIABLE, f"{MODULE}:{EXCHANGE}:{PEERS}")
    systems.systems.cache_clear()
    yield MODULE
    systems.systems.cache_clear()


@pytest.fixture
def summary_with(tmp_path):
    """Return a function that gives the summary of a run of an experiment with machines of this build."""

    def run(file, build, *settings):
        experiment = load_experiment(str(Path(__file__).with_name(file)), settings)
        return summary_of(simulated(experiment, tmp_path, build=build))

    return run


@pytest.fixture
def wrong_with(summary_with):
    """Return a function that gives the error counts of such a run."""

    def run(file, build, *settings):
        summary = summary_with(file, build, *settings)
        assert summary["events"]["delivered"] > 1_000
        found = {name: summary["events"][name] for name in WRONG if summary["events"][name]}
        assert missed(summary) == [f"events.{name} == 0" for name in found]
        assert summary["verdict"] == ("failed" if found else "passed")
        return found

    return run


@pytest.fixture
def with_role():
    """Return a function that builds machines and applies a change to the first one of a role."""

    def changing(role, change):
        def build(spec, rng):
            machine = build_machine(spec, rng)
            if spec.name == f"r0/{role}-0":
                change(machine)
            return machine

        return build

    return changing
