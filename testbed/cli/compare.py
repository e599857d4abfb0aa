"""`cutset compare`: two or more analysed runs side by side, as a page and as text."""

from pathlib import Path

import click

from testbed.cli.options import run_arguments


@click.command(name="compare")
@run_arguments("RUN RUN...")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Where to write the page.  [default: comparison.html in the last RUN's directory]",
)
@click.option("--text", is_flag=True, help="Print the comparison, and write no page.")
def command(run_names: tuple[str, ...], output: Path | None, text: bool) -> None:
    """Hold runs against the first one: settings, versions, numbers, and timelines over each other.

    All must have been analysed; captures are not needed. Exit codes: 0 compared, whatever came out, 2 no such
    run, or not analysed yet.
    """
    from analysis.pages.comparing.page import write_page
    from analysis.pages.comparing.sides import read_sides
    from analysis.pages.comparing.text import lines
    from testbed.cli.named_run import named_run
    from testbed.cli.output import check_directory, reader_may_leave
    from topologies.errors import InputError

    sides = read_sides([named_run(name) for name in run_names])
    if text:
        if output is not None:
            raise click.UsageError("--text writes no page: leave out -o")
        with reader_may_leave():
            click.echo("\n".join(lines(sides)))
        return
    page = output or sides[-1].directory.comparison_html
    check_directory(page)
    try:
        write_page(sides, page)
    except OSError as error:
        raise InputError(str(page), None, "", f"cannot be written: {error.strerror}") from None
    click.echo(f"comparison   {page} ({page.stat().st_size / 1e3:.0f} kB)")
