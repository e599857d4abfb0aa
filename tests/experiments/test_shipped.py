"""Every experiment that ships asks for everything that its system promises."""

from pathlib import Path

import pytest

import experiments
from experiments.loader import read_experiment
from systems.names import system_names

PROMISED = ("lost", "duplicated", "out_of_order", "corrupted", "resurrected", "unordered_publishers")
MAY_LOSE = {
    "fanout-shuffle": "its heaviest points offer more than links carry: not all has come at their end",
    "latency-load-paper": "likewise",
    "nemesis-blackout": "what only the dead had is lost",
    "subscription-rule": "the printed rule may stall",
}
NOT_OURS = {f"system: {name}" for name in system_names()}
"""Programs are held against their contracts alone, and so are systems side by side (`variants`)."""
SHIPPED = sorted(
    path.stem
    for path in Path(experiments.__file__).parent.glob("*.yaml")
    if NOT_OURS.isdisjoint(path.read_text().splitlines()) and "\nvariants:" not in path.read_text()
)


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_experiments_expect_no_wrong_events(name):
    asked = [expectation.text for expectation in read_experiment(name, []).experiment.expect]
    promised = [each for each in PROMISED if each != "lost" or name not in MAY_LOSE]
    assert [each for each in promised if f"events.{each} == 0" not in asked] == []
