"""`cutset report`: writes the page and the figures of an analysed run or a sweep again."""

from typing import TYPE_CHECKING

import click

from testbed.cli.options import run_argument

if TYPE_CHECKING:
    from pathlib import Path


@click.command(name="report")
@run_argument
def command(run_name: str) -> None:
    """Write report.html and figures/ of an analysed run, or of a sweep.

    Needs neither captures nor Spark. Exit codes: 0 written, 2 no such run, or not analysed yet, 3 another
    command uses it.
    """
    from analysis.arrow_alone import keep_pandas_out

    keep_pandas_out()
    from analysis.pages.report import write_report
    from experiments.campaigns.sweepdir import SweepDirectory
    from testbed.campaign.in_use import sole_writer
    from testbed.cli.named_run import named

    found = named(run_name)
    with sole_writer(found.path):
        if isinstance(found, SweepDirectory):
            from testbed.campaign.sweeps.sweep_run import write_sweep_page

            write_sweep_page(found)
            _show(found.report_html, found.figures)
        else:
            _show(write_report(found), found.figures)


def _show(page: "Path", figures: "Path") -> None:
    click.echo(f"report       {page} ({page.stat().st_size / 1e6:.1f} MB)")
    click.echo(f"figures      {figures} ({len(list(figures.iterdir())) if figures.exists() else 0} files)")
