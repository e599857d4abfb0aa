"""`cutset export` packs a run, and other commands accept the archive."""

import pytest

from testbed.cli.main import run as cutset
from tests.analysis.pages.report.synthetic_run import write_run


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Return the working directory, with a run elsewhere."""
    write_run(tmp_path / "elsewhere")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


@pytest.mark.slow
def test_a_packed_run_has_a_report_like_any_other(here, capsys):
    (run,) = (here.parent / "elsewhere").iterdir()
    assert cutset(["export", str(run), "--no-captures", "-o", "a.tar.zst"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("packed ")
    assert "MB, without captures, as a.tar.zst (" in said
    assert cutset(["report", "a.tar.zst"]) == 0
    captured = capsys.readouterr()
    assert captured.err == f"unpacked to runs/{run.name}\n"
    assert (here / "runs" / run.name / "report.html").is_file()
    assert cutset(["analyze", "a.tar.zst"]) == 2
    assert "no longer has captures (left out when the run was packed)" in capsys.readouterr().err


@pytest.mark.parametrize("named", [[], ["-o", "a.tar.zst"]])
def test_an_existing_archive_is_replaced_only_by_force(here, capsys, named):
    (run,) = (here.parent / "elsewhere").iterdir()
    archive = here / (named[1] if named else f"{run.name}.tar.zst")
    archive.write_bytes(b"captures that are nowhere else")
    capsys.readouterr()
    assert cutset(["export", str(run), *named]) == 2
    said = f"cutset: {archive.name}: exists already: replace it with --force, or set another with -o\n"
    assert capsys.readouterr().err == said
    assert archive.read_bytes() == b"captures that are nowhere else"
    assert cutset(["export", str(run), *named, "--force"]) == 0
    assert archive.read_bytes() != b"captures that are nowhere else"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["export", "nope"], "there is no such run"),
        (["export", "{run}", "-o", "a.zip"], "should end with .tar.zst"),
        (["export", "{run}", "-o", "missing/a.tar.zst"], "its directory does not exist"),
        (["report", "nope.tar.zst"], "there is no such packed run"),
    ],
)
def test_impossible_exports_are_refused_in_one_line(here, capsys, arguments, why):
    (run,) = (here.parent / "elsewhere").iterdir()
    assert cutset([argument.format(run=run) for argument in arguments]) == 2
    said = capsys.readouterr().err
    assert why in said
    assert said.count("\n") == 1
    assert list(here.iterdir()) == []
