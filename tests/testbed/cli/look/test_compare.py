"""`cutset compare`: its page, its text, and its errors."""

from pathlib import Path

import pytest

from testbed.cli.main import run as cutset
from tests.analysis.pages.report.report_scenario import SCENARIOS
from tests.analysis.pages.report.synthetic_run import write_run

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def runs(tmp_path):
    """Return two runs."""
    return [str(write_run(tmp_path / name, SCENARIOS[name]).path) for name in ("passed", "narrow")]


@pytest.mark.slow
def test_the_page_is_in_the_last_run_by_default(runs, tmp_path, capsys):
    assert cutset(["compare", *runs]) == 0
    page = Path(runs[1]) / "comparison.html"
    assert capsys.readouterr().out.startswith(f"comparison   {page} (")
    assert "2 runs compared" in page.read_text()
    assert cutset(["compare", *runs, "-o", str(tmp_path / "page.html")]) == 0
    assert (tmp_path / "page.html").exists()


def test_text_is_printed_and_no_page_written(runs, capsys):
    assert cutset(["compare", "--text", *runs]) == 0
    said = capsys.readouterr().out
    assert said.startswith("A  20260101T000000Z-link-failure-0a1b2c  passed")
    assert "topology" in said or "different settings" in said
    assert not (Path(runs[1]) / "comparison.html").exists()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["{0}"], "takes 2 to"),
        (["{0}", "nowhere"], "there is no such run"),
        (["{0}", "{1}", "-o", "/nowhere/at/all.html"], "its directory does not exist"),
        (["--text", "-o", "x.html", "{0}", "{1}"], "writes no page"),
    ],
)
def test_incomparable_runs_are_refused(runs, arguments, why, capsys):
    assert cutset(["compare", *(argument.format(*runs) for argument in arguments)]) == 2
    assert why in capsys.readouterr().err
