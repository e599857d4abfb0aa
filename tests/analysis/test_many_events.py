"""The memory of an analysis by content grows with matches, not with clients times events."""

import subprocess
import sys
from pathlib import Path

import pytest

from analysis.pipeline import analyze_here
from node import systems
from tests.analysis.test_many_clients import ANALYSE
from tests.large_runs.many_events import make_run

MODULE = Path(__file__).parents[1] / "broker" / "exchange.py"


@pytest.fixture
def exchange(monkeypatch):
    """Make the system known, here and in child processes."""
    monkeypatch.setenv(systems.MODULES_VARIABLE, str(MODULE))
    systems.systems.cache_clear()
    yield
    systems.systems.cache_clear()


def grown(run):
    """Analyse a run; return its summary, and the memory growth of the process in KiB."""
    command = [sys.executable, "-c", ANALYSE, str(run.path)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return run.read_summary(), int(said)


WRONG = ("stray", "duplicated", "out_of_order", "corrupted")


@pytest.mark.slow
@pytest.mark.usefixtures("exchange")
def test_memory_grows_with_matches_and_not_with_clients_times_events(tmp_path):
    few, small = grown(make_run(tmp_path / "few", clients=48, each=20, events=4_000))
    # As many subscriptions:
    many, large = grown(make_run(tmp_path / "many", clients=960, each=1, events=4_000))
    for summary in (few, many):
        events = summary["events"]
        assert events["published"] == 16_000
        assert events["delivered"] > 45_000
        assert {name: events[name] for name in WRONG} == dict.fromkeys(WRONG, 0)
        assert 0 < events["lost"] < 0.1 * events["delivered"]  # by the cut
        assert summary["latency"]["p50_ms"] == pytest.approx(20)
        assert summary["subscriptions"] == {"asked": 960, "unconfirmed": 0, "wait_max_s": 0.0}
    assert large < 1.8 * small


@pytest.mark.slow
@pytest.mark.usefixtures("exchange")
def test_undelivered_events_are_all_lost(tmp_path):
    came, lost = (
        analyze_here(
            make_run(tmp_path / str(all_of_it), clients=40, each=2, events=250, lose_all=all_of_it),
            progress=lambda _: None,
        )
        for all_of_it in (False, True)
    )
    assert lost["events"]["delivered"] == 0
    assert lost["events"]["lost"] == came["events"]["delivered"] + came["events"]["lost"] > 200
