"""`cutset hosts`: what the machines of an inventory can do, and how to get what is missing there."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from testbed.cli.doctor import MARKS

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from testbed.errors import TestbedError
    from testbed.hosts.archive import Archive
    from testbed.hosts.checks import Examined
    from testbed.hosts.cleaning import Cleared
    from testbed.hosts.ssh import Connection

COLUMNS = ("login", "Python", "tools", "links", "network", "peers", "clock", "disk", "memory", "code", "runs")
SHOWN_IF_WRONG = ("login", "Python", "tools")
LEFT_OUT_FIRST = ("code", "memory", "disk", "clock", "runs", "peers", "network", "links")
UNKNOWN = "-"
WIDTH_ELSEWHERE = 200


@click.command(name="hosts")
@click.argument("inventory", type=click.Path(path_type=Path))
@click.option("--clean", is_flag=True, help="End what earlier runs left there, and remove what was fetched.")
def command(inventory: Path, clean: bool) -> int:
    """Check what the machines of INVENTORY can do, all at once.

    Nothing is installed or changed there. With --clean, runs that nobody is connected to are ended, those
    whose files are in runs/ here are removed there, and so is code of other versions.
    """
    from testbed.cli import exit_codes
    from testbed.hosts.archive import machine_archive
    from testbed.hosts.checks import examine
    from testbed.hosts.connecting import connected
    from testbed.hosts.inventory import load_inventory

    loaded = load_inventory(inventory)
    archive = machine_archive()
    with connected(loaded.machines) as connections:
        if clean:
            _clean(connections, archive)
        examined = examine(loaded, connections, archive)
    show(examined)
    for line in problem_lines(examined):
        click.echo(line)
    unfit = [each.machine.name for each in examined if each.missing]
    if unfit:
        click.echo(f"cutset: cannot take part: {', '.join(unfit)}", err=True)
        return exit_codes.MACHINE
    click.echo("Every machine can take part in runs." if len(examined) > 1 else "It can take part in runs.")
    return 0


def table(examined: Sequence["Examined"], columns: Sequence[str]) -> "Table":
    """A row for each machine, a column for each of these subjects; what is not good is marked."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    shown = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for column in ("", "machine", *columns):
        shown.add_column(column, no_wrap=True)
    for each in examined:
        shown.add_row(_mark(each), each.machine.name, *(_cell(each, column) for column in columns))
    return shown


def columns_for(examined: Sequence["Examined"], console: "Console") -> list[str]:
    """The subjects that fit, less important ones left out first, but not those with something wrong."""
    wrong = {finding.subject for each in examined for finding in each.missing}
    columns = [column for column in COLUMNS if column in wrong or column not in SHOWN_IF_WRONG]
    spare = [column for column in LEFT_OUT_FIRST if column not in wrong]
    wide = console.options.update(max_width=WIDTH_ELSEWHERE)
    while spare and console.measure(table(examined, columns), options=wide).maximum > console.width:
        columns.remove(spare.pop(0))
    return columns


def left_out_line(columns: Sequence[str]) -> str | None:
    """Which subjects there was no room for, and where they are."""
    left_out = [column for column in COLUMNS if column not in {*columns, *SHOWN_IF_WRONG}]
    if not left_out:
        return None
    return f"No room for: {', '.join(left_out)}. All columns: cutset hosts INVENTORY | less -S"


def _mark(each: "Examined") -> "Text":
    from rich.text import Text

    states = {finding.state.value for finding in each.findings}
    worst = next(state for state in reversed(MARKS) if state in states)
    mark, colour = MARKS[worst]
    return Text(mark, colour)


def _cell(each: "Examined", subject: str) -> "Text":
    """As `Text`, for what a machine says of itself is no markup."""
    from rich.text import Text

    findings = [finding for finding in each.findings if finding.subject == subject]
    if not findings:
        return Text(UNKNOWN)
    worst = max(findings, key=lambda finding: list(MARKS).index(finding.state.value))
    text = ", ".join(dict.fromkeys(finding.cell for finding in findings))
    return Text(text, "" if worst.state.value == "good" else MARKS[worst.state.value][1])


def problem_lines(examined: Sequence["Examined"]) -> list[str]:
    """What is not as it should be, each with its remedy; the same on several machines is said once."""
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


def show(examined: Sequence["Examined"], *, aside: bool = False) -> None:
    """The table: what fits on the terminal, and what did not; elsewhere all. aside: on standard error."""
    import sys

    from rich.console import Console

    stream = sys.stderr if aside else sys.stdout
    console = Console(file=stream, width=None if stream.isatty() else WIDTH_ELSEWHERE)
    columns = columns_for(examined, console)
    console.print(table(examined, columns))
    if line := left_out_line(columns):
        console.print(line, markup=False, highlight=False)


def _clean(connections: Sequence["Connection | TestbedError"], archive: "Archive") -> None:
    """Clean the machines that can be reached, and say what was done; the table says why the others cannot."""
    from experiments.rundir import RUNS
    from testbed.errors import TestbedError
    from testbed.hosts.cleaning import clean

    reached = [connection for connection in connections if not isinstance(connection, TestbedError)]
    machines: dict[str, list[str]] = {}
    for connection, result in zip(reached, clean(reached, RUNS, archive), strict=True):
        if isinstance(result, TestbedError):
            click.echo(str(result))
            continue
        for line in cleared_lines(result):
            machines.setdefault(line, []).append(connection.machine.name)
    for line, names in machines.items():
        click.echo(f"{', '.join(names)}: {line}")


def cleared_lines(cleared: "Cleared") -> list[str]:
    """What was done on a machine, and what stays there."""
    lines = [f"ended {run}, which nobody was connected to" for run in cleared.ended]
    lines += [f"removed {run}, whose files are here" for run in cleared.removed]
    lines += (
        [f"removed {cleared.code} other version{'s' * (cleared.code > 1)} of our code"]
        if cleared.code
        else []
    )
    lines += [f"left {run} alone: it is in use" for run in cleared.in_use]
    lines += [
        f"kept {run} ({size / 1e6:.0f} MB): its files are not all here -> cutset fetch {run}"
        for run, size in cleared.kept.items()
    ]
    return lines or ["nothing to clean"]
