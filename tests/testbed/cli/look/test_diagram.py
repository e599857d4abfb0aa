"""`cutset diagram`: its picture, its output, and its errors in one line."""

import re

import pytest

from testbed.cli.main import run as cutset
from tests.analysis.pages.report.report_scenario import Scenario
from tests.analysis.pages.report.synthetic_run import write_run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Make an analysed run with a link failure at 19 s. Tests must not change it."""
    return write_run(tmp_path_factory.mktemp("diagrams"))


def drawn(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """Run a command that succeeds and return its output."""
    assert cutset(["diagram", *arguments]) == 0
    captured = capsys.readouterr()
    return captured.out, captured.err


def test_a_diagram_around_a_fault_shows_its_effects(run, tmp_path, capsys):
    path = tmp_path / "cut.svg"
    out, err = drawn([str(run.path), "--around", "cut", "-o", str(path)], capsys)
    assert out.startswith(f"diagram      {path} (")
    assert out.endswith("messages between 3 hosts)\n")
    others = "messages about other streams (s0, s1, s3)"
    assert f"left out     {others}, and s3 was disturbed too: --stream 3 shows it\n" in err
    picture = path.read_text()
    assert "SUBSCRIBE s2 after" in picture
    assert "cut r2\u2013r3" in picture
    assert 'class="cross"' in picture


def test_a_diagram_of_a_time_is_written_to_the_runs_figures(run, capsys):
    out, _ = drawn([str(run.path), "--from", "18", "--to", "18.2", "--region", "r1"], capsys)
    path = run.figure("diagram-18.000-18.200-r1", "svg")
    assert str(path) in out
    assert "r1-client-0" in path.read_text()


@pytest.mark.parametrize("stream", ["3", "s3", "r3"])
def test_another_stream_can_be_selected_around_a_fault(run, tmp_path, capsys, stream):
    path = tmp_path / "s3.svg"
    drawn([str(run.path), "--around", "cut", "--stream", stream, "--output", str(path)], capsys)
    picture = path.read_text()
    assert "SUBSCRIBE s3 after" in picture
    assert "SUBSCRIBE s2" not in picture
    shown = " ".join(re.findall(r'command">([^<]*)<', picture))
    assert shown == f"cutset diagram {run.path} --around cut --stream 3"


def test_filters_narrow_the_diagram(run, tmp_path, capsys):
    path = tmp_path / "x.svg"
    asked = ["--from", "18", "--to", "18.2", "--host", "r0/proxy-0", "--type", "events", "--stream", "0"]
    drawn([str(run.path), *asked, "--output", str(path)], capsys)
    picture = path.read_text()
    assert "NOTIFY" not in picture
    assert "EVENTS s1" not in picture
    assert "EVENTS s0" in picture


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Run a refused command and return its errors."""
    assert cutset(["diagram", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "give either --from and --to, or --around"),
        (["--from", "3"], "give either --from and --to, or --around"),
        (["--around", "cut", "--from", "3", "--to", "4"], "give either --from and --to, or --around"),
        (["--from", "4", "--to", "3"], "--from 4 is not before --to 3"),
        (["--from", "nan", "--to", "3"], "nan is not a number of seconds"),
        (["--around", "cutt"], "did you mean cut?"),
        (["--from", "18", "--to", "19", "--host", "r0-proxy-9"], "no such host: known are"),
        (["--from", "18", "--to", "19", "--type", "gossip"], "no such type of message"),
        (["--from", "18", "--to", "19", "--stream", "9"], "no such stream"),
        (["--from", "18", "--to", "19", "--region", "r7"], "no such region: known are r0"),
        (["--from", "1", "--to", "2"], "has no matching messages"),
    ],
)
def test_impossible_diagrams_are_refused(run, arguments, said, capsys):
    assert said in refused([str(run.path), *arguments], capsys)


def test_a_picture_is_svg_in_an_existing_directory(run, tmp_path, capsys):
    asked = [str(run.path), "--around", "cut", "--output"]
    assert "should end in .svg" in refused([*asked, str(tmp_path / "a.png")], capsys)
    assert "its directory does not exist" in refused([*asked, str(tmp_path / "none" / "a.svg")], capsys)
    assert list(tmp_path.iterdir()) == []


def test_a_run_without_captures_is_refused(tmp_path, capsys):
    run = write_run(tmp_path, Scenario(captures=False))
    assert "it was run without captures" in refused([str(run.path), "--around", "cut"], capsys)


def test_an_older_analysis_can_be_repeated(tmp_path, capsys):
    run = write_run(tmp_path, Scenario(crashed=True))
    asked = [str(run.path), "--from", "1", "--to", "2"]
    assert f"create it with `cutset analyze {run.path}`" in refused(asked, capsys)
