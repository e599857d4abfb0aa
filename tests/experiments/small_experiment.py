"""A small experiment as text, for tests to change and to load."""

from pathlib import Path

import pytest

from experiments.loader import load_experiment
from experiments.model import Experiment

GOOD = """
name: small
topology: three-regions
system: sprinkler
parameters: {advertisement_period: 500ms}
roles: {proxy: 1, driver: 1, client: 2}
workload: {event_size: 10B, rate: 1000/s}
duration: 30s
faults:
  - {name: cut, at: 10s, cut: [r0, r1]}
  - {at: 20s, restore: cut}
expect:
  - events.lost == 0
  - recovery.cut.switch_s <= 2
""".lstrip()


@pytest.fixture
def load(tmp_path: Path, monkeypatch):
    """Return a function that loads an experiment from its text, with overrides."""
    monkeypatch.chdir(tmp_path)

    def load_text(text: str, *overrides: str) -> Experiment:
        Path("small.yaml").write_text(text)
        return load_experiment("small.yaml", overrides)

    return load_text


def changed(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new)
