"""`cutset report`: the page and the figures of an analysed run again."""

import click


@click.command(name="report")
@click.argument("run_name", metavar="RUN")
def command(run_name: str) -> None:
    """Write report.html and figures/ of a run that has been analysed.

    RUN is a path, a name below runs/, or `latest`. Needs neither captures nor Spark. Exit codes: 0 written,
    2 no such run, or not analysed yet.
    """
    from analysis.report import write_report
    from testbed.cli.named_run import named_run

    run = named_run(run_name)
    page = write_report(run)
    click.echo(f"report       {page} ({page.stat().st_size / 1e6:.1f} MB)")
    click.echo(f"figures      {run.figures} ({len(list(run.figures.iterdir()))} files)")
