"""The final text of a night: worst first, one line per entry."""

from dataclasses import replace
from datetime import date
from pathlib import Path

from experiments.campaigns.campaign import FailureKind, RunHeadline, RunState
from experiments.campaigns.nights import NightDirectory
from experiments.records.run_record import Outcome
from experiments.suite import read_suite
from testbed.campaign.nights.night_options import HISTORY, NightOptions
from testbed.campaign.nights.night_text import replay_command, show_night
from tests.campaigns import night_record, night_run

BUSY = {"verdict": "invalid", "failure": FailureKind.FIDELITY, "problem": "busy"}
PASSED = {"state": RunState.DONE, "verdict": "passed", "duration_s": 61.0}
DONE = night_run("link-failure", **PASSED, headline=RunHeadline(79_990.4, 34.4))
PEAK = night_run("throughput", **PASSED, experiment="throughput")
RUNS = (
    DONE,
    night_run("link-failure", 1, **PASSED | BUSY),
    night_run("link-failure", 2, **PASSED | BUSY),
    replace(PEAK, **BUSY, allow_failure=True),
    night_run("nemesis", state=RunState.SKIPPED, problem="no time left"),
)
USUAL = NightOptions(jobs=1, out=Path("runs"), history=HISTORY, site=None, hooks=(), hooks_always=())
RECORD = night_record(*RUNS, outcome=Outcome.COMPLETED)


def test_the_final_text_of_a_night(capsys):
    directory = NightDirectory.for_night(Path("runs"), date(2026, 11, 21), "quick")
    record = replace(RECORD, findings=("link-failure latency.p99_ms: 30 ms, then 34 ms",))
    show_night(directory, record, read_suite("quick"), Path("history/site/index.html"), USUAL)
    lines = [line for line in capsys.readouterr().out.splitlines() if "replay: " not in line]
    assert lines == [
        "night        1 got worse, 2 of 5 runs failed",
        "runs         1 passed, 3 invalid, 1 left out; 5 in all",
        "worse        link-failure latency.p99_ms: 30 ms, then 34 ms",
        "failed       link-failure: 2 of 3: invalid: busy",
        "failed       throughput: invalid (allowed): busy",
        "page         history/site/index.html",
        "results      runs/nights/2026-11-21-quick/junit.xml",
        "record       runs/nights/2026-11-21-quick/night.json",
    ]


def test_an_interrupted_night_prints_the_command_to_resume(capsys):
    directory = NightDirectory.for_night(Path("runs"), date(2026, 11, 21), "quick")
    interrupted = replace(RECORD, outcome=Outcome.INTERRUPTED)
    show_night(directory, interrupted, read_suite("quick"), None, USUAL)
    said = capsys.readouterr().out
    assert said.startswith("night        interrupted, 2 of 5 runs failed\n")
    assert "resume       cutset nightly quick --date 2026-11-21 --resume\n" in said
    asked = NightOptions(
        jobs=2,
        out=Path("../my runs"),
        history=Path("../h"),
        site=Path("/srv/page"),
        hooks=("mail --to ada",),
        hooks_always=("log",),
        keep_bytes=50 * 10**9,
    )
    show_night(directory, interrupted, replace(read_suite("quick"), named="my suite.yaml"), None, asked)
    assert (
        "resume       cutset nightly 'my suite.yaml' --date 2026-11-21 --resume --jobs 2 --out '../my runs'"
        " --history ../h --site /srv/page --keep 50GB --hook 'mail --to ada' --hook-always log\n"
    ) in capsys.readouterr().out


def test_one_run_of_a_sweep_is_replayed_by_itself():
    assert replay_command(PEAK, read_suite("quick")).endswith(
        "--set sweep=null --set repeat=null --seed 11 --on local"
    )


def test_the_replay_command_has_the_links_of_the_entry(tmp_path):
    suite = tmp_path / "small.yaml"
    entry = "{name: cut, experiment: link-failure, links: relay}"
    suite.write_text(f"suite: small\nbudget: 1min\nentries: [{entry}]\n")
    run = replace(DONE, entry="cut")
    assert replay_command(run, read_suite(str(suite))).endswith(" --links relay --seed 11 --on local")
