"""`cutset history`: lists the requested rows, adds runs made by hand, and frees disk space."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analysis.history import History, Metric
from analysis.history.files import night_file
from analysis.history.history_schemas import RUNS
from experiments.loader import load_experiment
from experiments.records.json_files import read_json
from experiments.records.rundir import RunDirectory
from testbed.cli.main import run as cutset
from testbed.sweeps import plain
from tests.analysis.history.records import NIGHT, P95, make_record
from tests.analysis.pages.report.synthetic_run import write_run
from topologies.loader import load_topology

Said = pytest.CaptureFixture[str]


@pytest.fixture
def history(tmp_path, monkeypatch):
    """Create three runs of two nights, in the working directory's history."""
    monkeypatch.chdir(tmp_path)
    history = History(Path("history"))
    history.append(make_record("run-a"))
    history.append(make_record("run-b", repeat=1, verdict="failed", duration_s=0.0))
    slow = (
        Metric(P95, 12_345.6, "ms", "lower"),
        Metric("throughput.events_per_s", 0.123456, "events/s", "higher"),
    )
    history.append(make_record("run-c", night="2026-03-15", suite="full", metrics=slow))
    return history


def lines(capsys: Said) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_runs_are_listed_the_latest_last(history, capsys):
    assert cutset(["history"]) == 0
    assert lines(capsys) == [
        "night       suite  entry   verdict        took  run",
        "2026-03-14  quick  cut r0  passed   1 min 00 s  run-a",
        "2026-03-14  quick  cut r1  failed            -  run-b",
        "2026-03-15  full   cut r0  passed   1 min 00 s  run-c",
        "3 runs of 2 nights: 2 passed, 1 failed",
    ]


def test_metrics_have_columns_with_their_units(history, capsys):
    metrics = ("latency.p95_ms", "events.lost", "throughput.events_per_s")
    asked = [argument for metric in metrics for argument in ("--metric", metric)]
    assert cutset(["history", *asked, "--limit", "2"]) == 0
    assert lines(capsys) == [
        "night       suite  entry   verdict  latency.p95_ms  events.lost (events)  throughput.events_per_s"
        "        took  run",
        "2026-03-14  quick  cut r1  failed               80                     0                        -"
        "           -  run-b",
        "2026-03-15  full   cut r0  passed           12,346                     -                    0.123"
        "  1 min 00 s  run-c",
        "3 runs of 2 nights: 2 passed, 1 failed; 1 earlier one is not shown (--limit 0 shows all)",
    ]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (["--suite", "quick"], ["run-a", "run-b"]),
        (["--verdict", "failed", "--verdict", "crashed"], ["run-b"]),
        (["--since", "2026-03-15"], ["run-c"]),
        (["--until", NIGHT], ["run-a", "run-b"]),
        (["--limit", "1"], ["run-c"]),
        (["--limit", "0", "--entry", "cut"], ["run-a", "run-b", "run-c"]),
        (["--experiment", "fanout"], []),
    ],
)
def test_requested_rows_are_listed(history, capsys, asked, found):
    assert cutset(["history", "list", "--format", "json", *asked]) == 0
    assert [json.loads(line)["run"] for line in lines(capsys)] == found


def test_json_has_settings_machine_and_metrics_as_objects(history, capsys):
    assert cutset(["history", "--format", "json", "--limit", "1", "--metric", P95]) == 0
    (row,) = map(json.loads, lines(capsys))
    assert (row["settings"], row["machine"]) == ({"duration": "30s"}, {"cpus": 2})
    assert row["metrics"] == {P95: 12_345.6}


def test_a_damaged_file_is_named_and_the_rest_is_shown(history, capsys):
    damaged = night_file(history.folder, RUNS, NIGHT).with_name("torn.parquet")
    damaged.write_bytes(b"torn")
    assert cutset(["history", "--format", "json"]) == 1
    captured = capsys.readouterr()
    assert captured.out.count("\n") == 3
    assert captured.err.startswith(f"cutset: {damaged} is damaged")
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--history", "nowhere"], "nowhere: holds no history yet"),
        (["--since", "yesterday"], "--since: yesterday is not a date, such as 2026-03-14"),
        (["--metric", "latency.p95"], "no run has latency.p95: did you mean latency.p95_ms?"),
        (["add", "nope"], "there is no such run"),
        (["prune", "--keep", "10"], "'10' is not a size: write one such as 50GB"),
    ],
)
def test_invalid_arguments_are_refused_in_one_line(history, capsys, arguments, why):
    assert cutset(["history", *arguments]) == 2
    said = capsys.readouterr().err
    assert why in said
    assert said.count("\n") == 1


def changed(run: RunDirectory, change: Callable[[dict[str, Any]], object]) -> RunDirectory:
    """Change run.json of the run."""
    content = read_json(run.run_json)
    change(content)
    run.run_json.write_text(json.dumps(content))
    return run


def made(parent: Path, name: str = "run", *overrides: str) -> RunDirectory:
    """Make a run of an experiment that comes with Cutset, with these overrides."""
    experiment = load_experiment("link-failure", overrides)
    topology = load_topology(experiment.topology)
    run = write_run(parent / name)
    run = RunDirectory(run.path.rename(run.path.with_name(f"{run.name}-{name}")))
    return changed(
        run, lambda content: content.update(experiment=plain(experiment), topology=plain(topology))
    )


def test_a_run_made_by_hand_is_added_once_to_the_night_it_started_in(tmp_path, capsys):
    run, folder = made(tmp_path / "runs"), tmp_path / "history"
    arguments = ["history", "add", str(run.path), "--history", str(folder)]
    assert cutset(arguments) == 0
    assert cutset(arguments) == 0
    (row,) = History(folder).runs().to_pylist()
    assert lines(capsys) == [
        f"{run.name}: added to the night {row['night']}",
        f"{run.name}: is already in the night {row['night']}",
    ]
    assert (row["suite"], row["entry"], row["repeat"]) == ("by-hand", row["experiment"], 0)
    assert History(folder).metrics().num_rows > 10


def on_machines(content: dict[str, Any]) -> None:
    content["machines"] = [{"name": f"h{number}", "hosts": []} for number in range(4)]


def of_ones_own(content: dict[str, Any]) -> None:
    content["experiment"]["name"] = "mine"


def more_latency(content: dict[str, Any]) -> None:
    content["topology"]["links"][0]["delay"] = "500ms"


@pytest.mark.slow
def test_runs_with_other_settings_topology_or_backend_are_other_series(tmp_path):
    slow, fast = "workload.rate=1000/s", "workload.rate=2000/s"
    runs = {
        "as-it-comes": made(tmp_path, "as-it-comes"),
        "again": made(tmp_path, "again", "seed=7"),
        "slow": made(tmp_path, "slow", slow),
        "fast": made(tmp_path, "fast", fast),
        "fast-again": made(tmp_path, "fast-again", fast),
        "on-machines": changed(made(tmp_path, "on-machines", fast), on_machines),
        "topology": made(tmp_path, "topology", "topology=three-regions", "faults=[]", "expect=[]"),
        "edited": changed(made(tmp_path, "edited"), more_latency),
        "relay": changed(made(tmp_path, "relay"), lambda content: content["plan"].update(links_kind="relay")),
        "own": changed(made(tmp_path, "own"), of_ones_own),
        "own-fast": changed(made(tmp_path, "own-fast", fast), of_ones_own),
        "own-again": changed(made(tmp_path, "own-again"), of_ones_own),
    }
    names = [str(run.path) for run in runs.values()]
    assert cutset(["history", "add", *names, "--history", str(tmp_path / "history")]) == 0
    rows = {row["run"]: row for row in History(tmp_path / "history").runs().to_pylist()}
    found = {name: rows[run.name] for name, run in runs.items()}
    entries = {name: row["entry"] for name, row in found.items()}
    assert entries["as-it-comes"] == entries["again"] == "link-failure"
    assert re.fullmatch("link-failure-rate-2000-s-[0-9a-f]{8}", entries["fast"])
    assert re.fullmatch("mine-[0-9a-f]{8}", entries["own"])
    assert entries["fast"] == entries["fast-again"]
    assert entries["own"] == entries["own-again"]
    assert len(set(entries.values())) == len(runs) - 3
    assert json.loads(found["fast"]["settings"]) == {"workload.rate": "2000/s"}
    on = json.loads(found["on-machines"]["settings"])
    assert on == {"on": "4 machines: h0, h1, h2, h3", "workload.rate": "2000/s"}


@pytest.mark.slow
def test_runs_that_were_not_analysed_are_left_out_with_the_reason(tmp_path, capsys):
    torn, whole, unanalysed = made(tmp_path, "torn"), made(tmp_path, "whole"), made(tmp_path, "unanalysed")
    changed(torn, lambda content: content.update(phase="building", outcome=None, times={"started_ns": 1}))
    torn.summary_json.unlink()
    unanalysed.summary_json.unlink()
    names = [str(run.path) for run in (torn, unanalysed, whole)]
    assert cutset(["history", "add", *names, "--history", str(tmp_path / "history")]) == 2
    said = capsys.readouterr()
    assert said.err.splitlines() == [
        f"cutset: {torn.path}: holds nothing to analyse: it ended before its nodes published anything"
        " (phase: building)",
        f"cutset: {unanalysed.path}: is not analysed yet: run `cutset analyze {unanalysed.path}`",
    ]
    assert said.out.startswith(f"{whole.name}: added to the night ")
    assert History(tmp_path / "history").runs()["run"].to_pylist() == [whole.name]


def kept_with_captures(tmp_path, folder, capsys):
    """Return a run of 3 MB that is in the history, and the command that leaves 2 MB."""
    run, history = write_run(tmp_path / folder), ["--history", str(tmp_path / "history")]
    run.captures.mkdir(exist_ok=True)
    (run.captures / "big.pcap").write_bytes(b"x" * 3_000_000)
    cutset(["history", "add", str(run.path), *history])
    capsys.readouterr()
    return run, ["history", "prune", *history, "--keep", "2MB"]


def test_pruning_keeps_the_numbers_and_lists_removed_parts(tmp_path, capsys):
    run, prune = kept_with_captures(tmp_path, "runs", capsys)
    assert cutset([*prune, "--dry"]) == 0
    said = lines(capsys)
    assert said[0] == f"{run.name}: captures (3 MB)"
    assert said[1] == "would go: captures 3 MB"
    assert (run.captures / "big.pcap").exists()
    assert cutset(prune) == 0
    assert lines(capsys)[1] == "went: captures 3 MB"
    assert not run.captures.exists()
    assert run.read_summary()["verdict"] == "passed"
    assert cutset(["analyze", str(run.path)]) == 2
    assert "no longer has captures (removed to stay within the disk budget)" in capsys.readouterr().err


def test_pruning_removes_only_what_is_in_the_folder_of_runs(tmp_path, capsys):
    run, prune = kept_with_captures(tmp_path, "elsewhere", capsys)
    assert cutset(prune) == 0
    said = capsys.readouterr()
    assert said.err == (
        f"cutset: {tmp_path / 'elsewhere'}: has 1 run of the history outside "
        f"{tmp_path / 'runs'}: left as it is\n"
    )
    assert said.out.startswith("went: nothing\n")
    assert (run.captures / "big.pcap").exists()
    assert cutset([*prune, "--out", str(tmp_path / "elsewhere")]) == 0
    assert not run.captures.exists()


@pytest.mark.slow
def test_a_night_is_read_once_however_many_runs_are_added_to_it(tmp_path, monkeypatch):
    runs = []
    for number in range(3):
        run = write_run(tmp_path / "runs")
        runs.append(str(run.path.rename(run.path.with_name(f"20260101T00010{number}Z-again-000002"))))
    read = []
    real = History.runs
    monkeypatch.setattr(History, "runs", lambda *arguments: (read.append(arguments), real(*arguments))[1])
    arguments = ["history", "add", *runs, "--history", str(tmp_path / "history"), "--entry", "cut"]
    assert cutset(arguments) == 0
    assert len(read) == 1
    assert cutset(arguments) == 0
    found = real(History(tmp_path / "history"))
    assert sorted(found["repeat"].to_pylist()) == list(range(3))


def test_a_summary_with_names_that_cannot_be_shown_is_refused(tmp_path, capsys):
    run = made(tmp_path, "odd")
    content = read_json(run.summary_json) | {"recovery": {"cut\x1b[2J": {"switch_s": 1.0}}}
    run.summary_json.write_text(json.dumps(content))
    assert cutset(["history", "add", str(run.path), "--history", str(tmp_path / "history")]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "its metric cannot be shown: 'recovery.cut\\x1b[2J.switch_s'" in said


def test_an_unreachable_budget_is_no_success(tmp_path, capsys):
    run, folder = write_run(tmp_path / "runs"), tmp_path / "history"
    cutset(["history", "add", str(run.path), "--history", str(folder)])
    assert cutset(["history", "prune", "--history", str(folder), "--keep", "1kB"]) == 1
    assert "the rest takes more than 1 kB" in capsys.readouterr().err
    assert sorted(path.name for path in run.path.iterdir()) == ["run.json", "summary.json"]
