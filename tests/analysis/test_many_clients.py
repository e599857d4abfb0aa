"""The memory of an analysis with many clients and topics grows with their subscriptions."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from analysis.pages.report import write_report
from experiments.records.rundir import RunDirectory
from node import systems
from tests.large_runs.many_clients import make_run

MODULE = Path(__file__).parents[1] / "broker" / "topic_broker.py"
ANALYSE = """
import sys
from pathlib import Path
from analysis.pipeline import analyze_here
from experiments.records.rundir import RunDirectory
def peak():  # of this program alone: ru_maxrss begins with its parent's
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
before = peak()
analyze_here(RunDirectory.open(Path(sys.argv[1])), progress=lambda text: None)
print(peak() - before)
"""


@pytest.fixture
def analysed(tmp_path, monkeypatch):
    """Return a function that makes and analyses a run; its result: the summary, and the memory growth in
    KiB.
    """
    monkeypatch.setenv(systems.MODULES_VARIABLE, str(MODULE))
    systems.systems.cache_clear()

    def analyse(clients, topics):
        run = make_run(tmp_path / str(clients), clients=clients, topics=topics)
        command = [sys.executable, "-c", ANALYSE, str(run.path)]
        grown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return run, json.loads(run.summary_json.read_text()), int(grown)

    yield analyse
    systems.systems.cache_clear()


@pytest.mark.slow
def test_memory_grows_with_subscriptions_and_not_with_clients_times_topics(analysed):
    _, _, small = analysed(400, 200)
    run, summary, large = analysed(1_200, 600)  # three times the subscriptions, nine times the pairs
    assert large < 4.5 * small
    events = summary["events"]
    assert events["published"] == 6_000
    assert {name: events[name] for name in ("lost", "stray", "duplicated", "out_of_order", "corrupted")} == {
        "lost": 0, "stray": 0, "duplicated": 0, "out_of_order": 0, "corrupted": 0,
    }  # fmt: skip
    assert summary["subscriptions"]["unconfirmed"] == 0
    cut = summary["recovery"]["cut"]
    assert 400 < cut["affected_pairs"] < 750  # an eighth: what two of four regions get of each other
    assert 3.0 < cut["first_route_s"] <= cut["switch_s"] < 4.3  # three seconds, and until the next event
    assert len(run.summary_json.read_bytes()) < 10_000
    write_report(RunDirectory.open(run.path))
    assert len(run.report_html.read_bytes()) < 2_500_000
