"""Errors become one line and the documented exit code; commands are found by name, with suggestions."""

import errno
from pathlib import Path

import click
import pytest

from analysis.errors import AnalysisError
from testbed.cli import main
from testbed.cli.commands_page import commands_page
from testbed.cli.options import RUN
from testbed.errors import MachineError, TestbedError
from topologies.errors import InputError

PAGE = Path(__file__).parents[3] / "docs" / "commands.md"


def run_raising(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> int:
    """Return the exit code of a command that raises this."""

    @click.command()
    def command() -> None:
        raise error

    monkeypatch.setattr(main.CommandGroup, "get_command", lambda *_: command)
    return main.run(["plan"])


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InputError("a.yaml", 3, "links.0.delay", "needs a unit"), 2),
        (MachineError("tcpdump is missing"), 3),
        (TestbedError("the relay died"), 1),
        (AnalysisError("no captures"), 1),
        (KeyboardInterrupt(), 130),
    ],
)
def test_every_kind_of_error_has_its_exit_code_and_one_line(monkeypatch, capsys, error, code):
    assert run_raising(monkeypatch, error) == code
    said = capsys.readouterr().err.strip()  # after Ctrl-C, click first ends the line with the ^C
    assert said.startswith("cutset: ")
    assert "\n" not in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["study", "--dry-run"], "No such option '--dry-run'. (cutset study --help)"),
        (["run"], "Missing argument 'EXPERIMENT'. (cutset run --help)"),
        (["--jobs"], "No such option '--jobs'. (cutset --help)"),
        (["schema", "foo"], "'foo' is not one of 'experiment', "),
    ],
)
def test_wrong_words_get_one_line_that_names_the_help(capsys, words, said):
    assert main.run(words) == 2
    line = capsys.readouterr().err
    assert line.startswith("cutset: ")
    assert said in line
    assert line.count("\n") == 1


def test_no_words_get_the_help(capsys):
    assert main.run([]) == 2
    assert "Look:" in capsys.readouterr().err


def test_a_defect_keeps_its_traceback(monkeypatch, capsys):
    assert run_raising(monkeypatch, ZeroDivisionError("oops")) == 1
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["report", ""], ["hosts", ""], ["run", "link-failure", "--on", ""]])
def test_an_empty_argument_does_not_mean_the_working_directory(words, capsys):
    assert main.run(words) == 2
    said = capsys.readouterr().err
    assert f"word {len(words)} is empty: is a variable of the shell not set?" in said


def test_the_help_of_every_command_with_a_run_explains_its_name(capsys):
    assert main.run(["--help"]) == 0
    listed = capsys.readouterr().out
    taking = set()
    for name in main.COMMANDS:
        assert name in listed
        assert main.run([name, "--help"]) == 0
        said = " ".join(capsys.readouterr().out.split())
        if RUN in said:
            taking.add(name)
        assert (" RUN" in said.partition(" Options: ")[0]) == (RUN in said)
    reading = {"compare", "export", "verify", "reproduce", "sql", "packets", "follow", "diagram"}
    assert taking == {"analyze", "report", "fetch", *reading}
    assert main.run(["history", "add", "--help"]) == 0
    assert RUN in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["anlyze"], "analyze"),
        (["runn", "link-failure"], "run"),
        (["history", "lst"], "list"),
        (["nightly", "instal", "quick"], "install"),
        (["nightly", "rnu", "quick"], "run"),
    ],
)
def test_a_mistyped_command_gets_a_suggestion(capsys, words, meant):
    assert main.run(words) == 2
    assert f"Did you mean '{meant}'?" in capsys.readouterr().err


@pytest.mark.parametrize("suite", ["quik", "./runs", "runs.yaml"])
def test_a_missing_suite_is_no_mistyped_command(capsys, suite):
    assert main.run(["nightly", suite, "--dry"]) == 2
    assert f"cutset: {suite.removeprefix('./')}: " in capsys.readouterr().err


def test_the_page_of_commands_is_their_help():
    assert PAGE.read_text() == commands_page() + "\n", (
        "python -m testbed.cli.commands_page > docs/commands.md"
    )


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (PermissionError(errno.EACCES, "Permission denied", "a run/figures/throughput.png"),
         "a run/figures/throughput.png: Permission denied"),
        (OSError(errno.EROFS, "Read-only file system", "a.tmp"), "a.tmp: Read-only file system"),
        (OSError(errno.ENOSPC, "Error writing bytes to file. Detail: [errno 28]"),
         "cannot continue: No space left on device"),
    ],
)  # fmt: skip
def test_errors_of_the_operating_system_are_no_defects(monkeypatch, capsys, error, said):
    assert run_raising(monkeypatch, error) == 3
    assert capsys.readouterr().err == f"cutset: {said}\n"


def test_an_unexpected_missing_file_is_a_defect(monkeypatch, capsys):
    assert run_raising(monkeypatch, FileNotFoundError(errno.ENOENT, "No such file", "x")) == 1
    assert "Traceback" in capsys.readouterr().err


def test_a_removed_working_directory_is_reported_in_one_line(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    assert main.run(["list"]) == 3
    assert "the working directory no longer exists" in capsys.readouterr().err
    monkeypatch.undo()
