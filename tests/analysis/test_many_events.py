"""The whole analysis of a run by content takes what matches take, and not clients times events."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from node import systems
from tests.analysis.test_many_clients import ANALYSE
from tests.many_events import make_run

MODULE = Path(__file__).parents[1] / "broker" / "exchange.py"


@pytest.fixture
def analysed(tmp_path, monkeypatch):
    """Makes a run and analyses it; its summary, and by how many KiB that made a process grow."""
    monkeypatch.setenv(systems.MODULES_VARIABLE, str(MODULE))
    systems.systems.cache_clear()

    def analyse(**sizes):
        run = make_run(tmp_path / str(len(list(tmp_path.iterdir()))), **sizes)
        command = [sys.executable, "-c", ANALYSE, str(run.path)]
        grown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return json.loads(run.summary_json.read_text()), int(grown)

    yield analyse
    systems.systems.cache_clear()


WRONG = ("stray", "duplicated", "out_of_order", "corrupted")


@pytest.mark.slow
def test_memory_grows_with_matches_and_not_with_clients_times_events(analysed):
    few, small = analysed(clients=48, each=20, events=8_000)
    many, large = analysed(clients=960, each=1, events=8_000)  # as many subscriptions
    for summary in (few, many):
        events = summary["events"]
        assert events["published"] == 32_000
        assert events["delivered"] > 90_000
        assert {name: events[name] for name in WRONG} == dict.fromkeys(WRONG, 0)
        assert 0 < events["lost"] < 0.1 * events["delivered"]  # by the cut
        assert summary["latency"]["p50_ms"] == pytest.approx(20)
        assert summary["subscriptions"] == {"asked": 960, "unconfirmed": 0, "wait_max_s": 0.0}
    assert large < 1.8 * small


@pytest.mark.slow
def test_what_came_to_nobody_is_all_lost(analysed):
    came, _ = analysed(clients=80, each=2, events=500)
    lost, _ = analysed(clients=80, each=2, events=500, lose_all=True)
    assert lost["events"]["delivered"] == 0
    assert lost["events"]["lost"] == came["events"]["delivered"] + came["events"]["lost"] > 1_000
