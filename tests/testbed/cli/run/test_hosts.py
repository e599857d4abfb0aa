"""The table of machines fits the terminal, and problems stay visible."""

import io

import click
import pytest
from rich.console import Console

from testbed.campaign.texts.machines_table import COLUMNS, columns_for, problem_lines, show, table
from testbed.cli.run.hosts import cleared_lines
from testbed.machines.checks import ExaminedMachine
from testbed.machines.cleanup import CleanupResult
from tests.testbed.machines.test_findings import findings, machine

NARROW, WIDE = 80, 160


class Terminal(io.StringIO):
    """A terminal of the given width."""

    def isatty(self) -> bool:
        return True


def drawn(examined: list[ExaminedMachine], width: int) -> list[str]:
    console = Console(width=width, force_terminal=False)
    with console.capture() as capture:
        console.print(table(examined, columns_for(examined, console)))
    return capture.get().splitlines()


@pytest.fixture
def examined():
    return [
        ExaminedMachine(machine(0), tuple(findings())),
        ExaminedMachine(machine(1), tuple(findings(missing=("tc",), synchronised=False))),
        ExaminedMachine(machine(2), tuple(findings(missing=("tc",)))),
    ]


def test_a_wide_terminal_shows_every_varying_subject(examined):
    header = drawn(examined, WIDE)[1].split()
    assert header == [
        "machine",
        "tools",
        "links",
        "network",
        "peers",
        "clock",
        "disk",
        "memory",
        "code",
        "runs",
    ]
    assert "tools" not in drawn(examined[:1], WIDE)[1]


def test_a_narrow_terminal_omits_columns_but_no_problem(examined):
    lines = drawn(examined, NARROW)
    assert all(len(line) <= NARROW for line in lines)
    assert not any("…" in line for line in lines)
    assert "tools" in lines[1]
    assert any("1 missing" in line for line in lines)


def test_columns_without_room_on_a_narrow_terminal_are_named(examined, monkeypatch):
    def said(width: int) -> list[str]:
        terminal = Terminal()
        monkeypatch.setattr("sys.stdout", terminal)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", str(width))
        show(examined)
        return click.unstyle(terminal.getvalue()).splitlines()

    assert not any("No room" in line for line in said(WIDE))
    narrow = said(NARROW)
    (line,) = [line for line in narrow if line.startswith("No room for: ")]
    shown = set(narrow[1].split()[1:])
    left_out = line.removeprefix("No room for: ").partition(".")[0].split(", ")
    assert left_out
    assert shown | set(left_out) == set(COLUMNS) - {"login", "Python"}
    assert shown.isdisjoint(left_out)


def test_the_same_problem_of_several_machines_is_reported_once(examined):
    lines = [click.unstyle(line) for line in problem_lines(examined)]
    assert [line for line in lines if "not installed" in line] == ["✗ h1, h2: not installed: tc"]


def test_texts_from_machines_are_no_markup():
    metadata = {"python": "3.11[/]", "missing": ("tc",)}
    lines = drawn([ExaminedMachine(machine(0), tuple(findings(**metadata, abi="[red]other")))], WIDE)
    assert any("3.11[/]" in line for line in lines)


def test_cleaned_and_remaining_items_are_reported():
    assert cleared_lines(CleanupResult((), (), (), {}, 0)) == ["nothing to clean"]
    cleared = CleanupResult(ended=("a",), removed=("a",), in_use=("b",), kept={"c": 2_000_000}, code=2)
    assert cleared_lines(cleared) == [
        "ended a, to which no controller was connected",
        "removed a, because its files are here",
        "removed 2 other versions of our code",
        "kept b: it is in use",
        "kept c (2 MB): its files are not all here -> cutset fetch c --on INVENTORY",
    ]
