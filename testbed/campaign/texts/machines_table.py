"""The table of machines with their capabilities, and lines about their problems."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from testbed.machines.checks import ExaminedMachine

MARKS = {"good": ("✓", "green"), "note": ("·", "yellow"), "missing": ("✗", "red")}
COLUMNS = (
    "login",
    "Python",
    "tools",
    "links",
    "network",
    "peers",
    "clock",
    "disk",
    "memory",
    "code",
    "runs",
)
SHOWN_IF_WRONG = ("login", "Python", "tools")
LEFT_OUT_FIRST = ("code", "memory", "disk", "clock", "runs", "peers", "network", "links")
UNKNOWN = "-"
WIDTH_ELSEWHERE = 200


def table(examined: Sequence["ExaminedMachine"], columns: Sequence[str]) -> "Table":
    """Return a table with a row per machine and a column per subject; problems are marked."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    shown = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    shown.add_column("", no_wrap=True, min_width=1)
    longest = max((len(each.machine.name) for each in examined), default=0)
    shown.add_column("machine", no_wrap=True, min_width=longest)  # others are cut if it is too wide
    for column in columns:
        shown.add_column(column, no_wrap=True)
    for each in examined:
        shown.add_row(_mark(each), each.machine.name, *(_cell(each, column) for column in columns))
    return shown


def columns_for(examined: Sequence["ExaminedMachine"], console: "Console") -> list[str]:
    """Return the subjects that fit: less important ones are omitted first, those with problems never."""
    wrong = {finding.subject for each in examined for finding in each.missing}
    columns = [column for column in COLUMNS if column in wrong or column not in SHOWN_IF_WRONG]
    spare = [column for column in LEFT_OUT_FIRST if column not in wrong]
    wide = console.options.update(max_width=WIDTH_ELSEWHERE)
    while spare and console.measure(table(examined, columns), options=wide).maximum > console.width:
        columns.remove(spare.pop(0))
    return columns


def left_out_line(columns: Sequence[str]) -> str | None:
    """Return a line that lists the subjects for which there was no room."""
    left_out = [column for column in COLUMNS if column not in {*columns, *SHOWN_IF_WRONG}]
    if not left_out:
        return None
    return f"No room for: {', '.join(left_out)}. All columns: cutset hosts INVENTORY | less -S"


def _mark(each: "ExaminedMachine") -> "Text":
    from rich.text import Text

    states = {finding.state.value for finding in each.findings}
    worst = next(state for state in reversed(MARKS) if state in states)
    mark, colour = MARKS[worst]
    return Text(mark, colour)


def _cell(each: "ExaminedMachine", subject: str) -> "Text":
    """Return a cell as `Text`, so that the machine's own texts are not parsed as markup."""
    from rich.text import Text

    findings = [finding for finding in each.findings if finding.subject == subject]
    if not findings:
        return Text(UNKNOWN)
    worst = max(findings, key=lambda finding: list(MARKS).index(finding.state.value))
    text = ", ".join(dict.fromkeys(finding.detail for finding in findings))
    return Text(text, "" if worst.state.value == "good" else MARKS[worst.state.value][1])


def problem_lines(examined: Sequence["ExaminedMachine"]) -> list[str]:
    """Return each problem with its remedy; one that several machines share is one line."""
    machines: dict[tuple[str, str, str], list[str]] = {}
    for each in examined:
        for finding in each.findings:
            if finding.problem:
                key = (finding.state.value, finding.problem, finding.remedy)
                machines.setdefault(key, []).append(each.machine.name)
    lines = []
    for (state, problem, remedy), names in machines.items():
        mark, colour = MARKS[state]
        who = "" if problem.startswith(f"{names[0]}: ") else f"{', '.join(names)}: "
        lines.append(f"{click.style(mark, fg=colour)} {who}{problem}")
        if remedy:
            lines.append(f"  -> {remedy}")
    return lines


def show(examined: Sequence["ExaminedMachine"], *, aside: bool = False) -> None:
    """Print the table, on a terminal as far as it fits. aside: print on standard error."""
    import sys

    from rich.console import Console

    stream = sys.stderr if aside else sys.stdout
    console = Console(file=stream, width=None if stream.isatty() else WIDTH_ELSEWHERE)
    columns = columns_for(examined, console)
    console.print(table(examined, columns))
    if line := left_out_line(columns):
        console.print(line, markup=False, highlight=False)
