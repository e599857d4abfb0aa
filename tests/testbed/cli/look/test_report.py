"""`cutset report` and `cutset analyze`: their output; one line and exit code 2 without results."""

import json
import os
import shutil

import pytest

from experiments.records.json_files import SIZE_BYTES_MAX
from testbed.cli.main import run as cutset
from tests.analysis.pages.report.synthetic_run import write_run


@pytest.mark.slow
def test_report_writes_page_and_figures_and_prints_their_paths(tmp_path, capsys):
    run = write_run(tmp_path)
    assert cutset(["report", str(run.path)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith(f"report       {run.report_html} (")
    assert said[1] == f"figures      {run.figures} (6 files)"
    assert 100_000 < run.report_html.stat().st_size < 800_000


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Run a refused command and return its only line of errors."""
    assert cutset(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err


@pytest.mark.parametrize("command", ["report", "analyze"])
def test_a_folder_that_is_no_run_is_refused(command, tmp_path, capsys):
    assert "it has no run.json" in refused([command, str(tmp_path)], capsys)


@pytest.mark.parametrize("command", [["report"], ["analyze"], ["compare", "--text"]])
@pytest.mark.parametrize(("name", "make"), [("summary.json", os.mkfifo), ("summary.json", os.mkdir)])
def test_a_record_that_is_no_file_is_refused(command, name, make, tmp_path, capsys):
    run = write_run(tmp_path)
    (run.path / name).unlink()
    make(run.path / name)
    assert f"{name}: is not a regular file: move it away" in refused([*command, str(run.path)], capsys)


@pytest.mark.parametrize(("kind", "command"), [("run", "report"), ("sweep", "report"), ("study", "study")])
def test_a_pipe_in_place_of_a_record_is_refused(kind, command, tmp_path, capsys):
    os.mkfifo(tmp_path / f"{kind}.json")
    said = refused([command, *(["--resume"] if command == "study" else []), str(tmp_path)], capsys)
    assert f"{kind}.json" in said or "run.json" in said


def test_a_record_that_is_too_large_is_refused(tmp_path, capsys):
    run = write_run(tmp_path)
    os.truncate(run.summary_json, SIZE_BYTES_MAX + 1)
    assert "summary.json: has more than 1024 MiB" in refused(["report", str(run.path)], capsys)


def test_report_of_a_run_without_analysis_names_the_remedy(tmp_path, capsys):
    run = write_run(tmp_path)
    run.summary_json.unlink()
    assert f"cutset analyze {run.path}" in refused(["report", str(run.path)], capsys)


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("analyze", []),
        ("report", []),
        ("packets", []),
        ("packets", ["--pcap", "-"]),
        ("follow", ["2", "1"]),
        ("diagram", ["--from", "1", "--to", "2"]),
    ],
)
def test_a_run_that_ended_before_time_0_has_nothing_to_analyse(tmp_path, capsys, command, options):
    run = write_run(tmp_path)
    run.summary_json.unlink()
    shutil.rmtree(run.table("transfers"))
    content = json.loads(run.run_json.read_text())
    content |= {"phase": "building", "times": {"started_ns": 1}}
    run.run_json.write_text(json.dumps(content))
    assert "nothing to analyse" in refused([command, str(run.path), *options], capsys)
