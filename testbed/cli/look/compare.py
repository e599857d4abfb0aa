"""`cutset compare`: analysed runs side by side, or the systems of a sweep, as a page and as text."""

from pathlib import Path

import click

from experiments.files.sanitize import printable
from testbed.cli.options import run_arguments


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
    type=click.Path(path_type=Path, dir_okay=False),
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
    (_compare_systems if systems else _compare_runs)(run_names, output, text=text)


def _compare_runs(run_names: tuple[str, ...], output: Path | None, *, text: bool) -> None:
    from analysis.pages.comparing.page import write_page
    from analysis.pages.comparing.sides import read_sides
    from analysis.pages.comparing.text import lines
    from testbed.campaign.in_use import reading
    from testbed.cli.named_run import named_run
    from testbed.cli.output import check_directory, reader_may_leave, writing

    runs = [named_run(name) for name in run_names]
    with reading(*(run.path for run in runs)):
        sides = read_sides(runs)
        if text:
            with reader_may_leave():
                click.echo("\n".join(map(printable, lines(sides))))
            return
        page = output or sides[-1].directory.comparison_html
        check_directory(page)
        with writing(page):
            write_page(sides, page)
    _say(page)


def _compare_systems(sweep_names: tuple[str, ...], output: Path | None, *, text: bool) -> None:
    from analysis.pages.systems.page import write_systems
    from analysis.pages.systems.sides import read_systems
    from analysis.pages.systems.text import lines
    from testbed.campaign.in_use import reading
    from testbed.cli.named_run import named_sweep
    from testbed.cli.output import check_directory, reader_may_leave, writing

    sweeps = [named_sweep(name) for name in sweep_names]
    with reading(*(sweep.path for sweep in sweeps)):
        if text:
            with reader_may_leave():
                click.echo("\n".join(map(printable, lines(read_systems(sweeps)))))
            return
        page = output or sweeps[-1].systems_html
        check_directory(page)
        with writing(page):
            write_systems(sweeps, page)
    _say(page)


def _say(page: Path) -> None:
    click.echo(f"comparison   {page} ({page.stat().st_size / 1e3:.0f} kB)")
