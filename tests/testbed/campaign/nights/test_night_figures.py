"""A suite's studies and watched sweeps: their figures must equal those of the last night."""

import json
from datetime import date

import pytest

from experiments.campaigns.campaign import FailureKind
from experiments.campaigns.nights import NightDirectory
from experiments.suite import read_suite
from testbed.campaign.nights.night_text import replay_command
from testbed.cli.main import run

pytestmark = pytest.mark.slow

SUITE = """
suite: small
budget: 1h
entries:
  - {name: zones, study: meghdoot-uniform, set: {peers: 10, subscriptions: 20, events: 60}}
  - name: outage
    experiment: link-failure-paper
    set: {roles.client: 1, roles.proxy: 1, workload.rate: 50/s, duration: 8s, faults.cut.at: 6s,
          faults.restore.at: 7s, expect: [events.duplicated == 0]}
    sweep: true
    unchanged: true
"""


def test_a_suite_of_studies_alone_needs_no_morning_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.yaml").write_text(
        SUITE.partition("  - {name: outage")[0].partition("  - name: outage")[0]
    )
    assert (
        run(["nightly", "small.yaml", "--date", "2026-11-20", "--history", "history", "--out", "runs"]) == 0
    )
    said = capsys.readouterr()
    assert "no morning page: it compares single runs, and this suite has none" in said.out + said.err
    assert "problem: " not in said.out + said.err


def test_a_changed_figure_fails_the_night_and_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.yaml").write_text(SUITE)

    def night(day):
        given = ["nightly", "small.yaml", "--date", f"2026-11-{day}", "--history", "history", "--out", "runs"]
        directory = NightDirectory.for_night(tmp_path / "runs", date(2026, 11, day), "small")
        return run(given), directory

    code, first = night(20)
    assert code == 0
    zones, outage = first.read().runs
    assert int(zones.figures["Unique zones"]) >= 1
    assert "Brief drop in throughput" in outage.figures
    code, second = night(21)
    assert code == 0, "the same code and seed give the same figures"
    assert [each.figures for each in second.read().runs] == [zones.figures, outage.figures]

    record = json.loads(second.night_json.read_text())
    record["runs"][0]["figures"]["Unique zones"] = "99"
    second.night_json.write_text(json.dumps(record))
    code, third = night(22)
    assert code == 1
    zones, outage = third.read().runs
    assert (zones.verdict, zones.failure) == ("failed", FailureKind.EXPECTATION)
    assert zones.problem.startswith("figures changed since 2026-11-21 (commit ")
    assert f"Unique zones: 99, now {zones.figures['Unique zones']}" in zones.problem
    assert outage.verdict == "passed"
    assert replay_command(zones, read_suite("small.yaml")) == (
        "cutset study meghdoot-uniform --set peers=10 --set subscriptions=20 --set events=60 --seed 1"
    )
