"""`cutset compare`: analysed runs side by side, or the systems of a sweep, as a page and as text."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from experiments.files.sanitize import printable
from testbed.cli.options import NEW_FILE, run_arguments

if TYPE_CHECKING:
    from experiments.campaigns.sweepdir import SweepDirectory
    from experiments.records.rundir import RunDirectory


@click.command(name="compare")
@run_arguments("RUN RUN...")
@click.option(
    "--systems",
    is_flag=True,
    help="Compare the variants of a sweep, such as link-failure-systems.",
)
@click.option(
    "-o",
    "--output",
    type=NEW_FILE,
    help="The file of the page.  [default: comparison.html, or systems.html, in the last RUN's directory]",
)
@click.option("--text", is_flag=True, help="Print the comparison, and write no page.")
def command(run_names: tuple[str, ...], systems: bool, output: Path | None, text: bool) -> None:
    """Compare runs with the first one: settings, versions, numbers, and timelines in the same charts.

    With --systems, RUN is one or several sweeps over variants. The page then shows how each system reacted to
    the same fault, over all repetitions: one table, small timelines, and facts from its connections. All runs
    must be analysed; captures are needed only for the facts. Exit codes: 0 compared, whatever the result, 2
    no such run, or not analysed yet, 3 another command makes or analyses one.
    """
    if text and output is not None:
        raise click.UsageError("--text writes no page: leave out -o")
    from testbed.campaign.in_use import reading
    from testbed.cli.named_run import named_run, named_sweep
    from testbed.cli.output import check_directory, reader_may_leave, writing

    found: list[Any] = [(named_sweep if systems else named_run)(name) for name in run_names]
    with reading(*(each.path for each in found)):
        lines, usual, write = (_systems if systems else _runs)(found)
        if text:
            with reader_may_leave():
                click.echo("\n".join(map(printable, lines())))
            return
        page = output or usual
        check_directory(page)
        with writing(page):
            write(page)
    click.echo(f"comparison   {page} ({page.stat().st_size / 1e3:.0f} kB)")


Comparison = tuple[Callable[[], Iterable[str]], Path, Callable[[Path], object]]
"""A function that returns the text, the usual file of the page, and one that writes the page."""


def _runs(runs: "Sequence[RunDirectory]") -> Comparison:
    from analysis.pages.comparing.page import write_page
    from analysis.pages.comparing.sides import read_sides
    from analysis.pages.comparing.text import lines

    sides = read_sides(runs)
    return partial(lines, sides), sides[-1].directory.comparison_html, partial(write_page, sides)


def _systems(sweeps: "Sequence[SweepDirectory]") -> Comparison:
    from analysis.pages.systems.page import write_systems
    from analysis.pages.systems.sides import read_systems
    from analysis.pages.systems.text import lines

    return lambda: lines(read_systems(sweeps)), sweeps[-1].systems_html, partial(write_systems, sweeps)
