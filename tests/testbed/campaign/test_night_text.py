"""What a night says of itself in the end: worst first, an entry a line."""

from dataclasses import replace
from datetime import date
from pathlib import Path

from experiments.nights import Failure, NightDirectory, NightRecord, NightRun, State
from experiments.suite import read_suite
from testbed.campaign.night_options import HISTORY, NightOptions
from testbed.campaign.night_text import replay_command, run_line, show_night

BUSY = {"verdict": "invalid", "failure": Failure.FIDELITY, "problem": "busy"}
DONE = NightRun(
    "link-failure",
    0,
    11,
    "link-failure",
    "local",
    state=State.DONE,
    verdict="passed",
    duration_s=61.0,
    headline={"events_per_s": 79_990.4, "latency_p99_ms": 34.4},
)
PEAK = replace(DONE, entry="throughput", experiment="throughput", headline={})
RUNS = (
    DONE,
    replace(DONE, repeat=1, **BUSY),
    replace(DONE, repeat=2, **BUSY),
    replace(PEAK, **BUSY, allow_failure=True),
    replace(PEAK, entry="nemesis", state=State.SKIPPED, verdict=None, problem="no time left"),
)
USUAL = NightOptions(jobs=1, out=Path("runs"), history=HISTORY, site=None, hooks=(), hooks_always=())
RECORD = NightRecord("2026-11-21", "quick", "digest", None, 600.0, 0, RUNS, outcome="completed")


def test_a_run_is_a_line():
    pending = replace(DONE, repeat=3, state=State.PENDING, verdict=None)
    record = replace(RECORD, runs=(*RUNS, pending))
    assert run_line(DONE, record, 61.0) == (
        "[5/6] link-failure r0 seed 11: passed, 79,990 events/s, p99 34 ms, took 1 min 01 s, "
        "about 1 min 01 s left"
    )
    assert run_line(RUNS[3], RECORD, 0.0) == (
        "[5/5] throughput r0 seed 11: invalid (allowed): busy, took 1 min 01 s"
    )
    assert run_line(RUNS[4], RECORD, 0.0).endswith("seed 11: left out (no time left), took 1 min 01 s")


def test_the_end_of_a_night_is_a_screen(capsys):
    directory = NightDirectory.of(Path("runs"), date(2026, 11, 21), "quick")
    record = replace(RECORD, findings=("link-failure latency.p99_ms: 30 ms, then 34 ms",))
    show_night(directory, record, read_suite("quick"), Path("history/site/index.html"), USUAL)
    lines = [line for line in capsys.readouterr().out.splitlines() if "replay: " not in line]
    assert lines == [
        "night        1 got worse, 2 failed",
        "runs         1 passed, 3 invalid, 1 left out; 5 in all",
        "worse        link-failure latency.p99_ms: 30 ms, then 34 ms",
        "failed       link-failure: 2 of 3: invalid: busy",
        "failed       throughput: invalid (allowed): busy",
        "page         history/site/index.html",
        "results      runs/nights/2026-11-21-quick/junit.xml",
        "record       runs/nights/2026-11-21-quick/night.json",
    ]


def test_a_night_that_was_interrupted_says_how_to_go_on(capsys):
    directory = NightDirectory.of(Path("runs"), date(2026, 11, 21), "quick")
    interrupted = replace(RECORD, outcome="interrupted")
    show_night(directory, interrupted, read_suite("quick"), None, USUAL)
    said = capsys.readouterr().out
    assert said.startswith("night        interrupted\n")
    assert "go on with   cutset nightly quick --date 2026-11-21 --resume\n" in said
    asked = NightOptions(
        jobs=2,
        out=Path("../my runs"),
        history=Path("../h"),
        site=Path("/srv/page"),
        hooks=("mail --to ada",),
        hooks_always=("log",),
        keep="50GB",
    )
    show_night(directory, interrupted, replace(read_suite("quick"), named="my suite.yaml"), None, asked)
    assert (
        "go on with   cutset nightly 'my suite.yaml' --date 2026-11-21 --resume --jobs 2 --out '../my runs'"
        " --history ../h --site /srv/page --keep 50GB --hook 'mail --to ada' --hook-always log\n"
    ) in capsys.readouterr().out


def test_one_run_of_a_sweep_is_replayed_by_itself():
    assert replay_command(PEAK, read_suite("quick")).endswith(
        "--set sweep=null --set repeat=null --seed 11 --on local"
    )


def test_a_run_is_replayed_with_the_links_that_its_entry_asks_for(tmp_path):
    suite = tmp_path / "small.yaml"
    entry = "{name: cut, experiment: link-failure, links: relay}"
    suite.write_text(f"suite: small\nbudget: 1min\nentries: [{entry}]\n")
    run = replace(DONE, entry="cut")
    assert replay_command(run, read_suite(str(suite))).endswith(" --links relay --seed 11 --on local")
