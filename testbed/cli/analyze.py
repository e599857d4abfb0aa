"""`cutset analyze`: from a run's captures to its tables, its summary and its report; may be run again at
any time.
"""

import click

from testbed.cli.options import run_argument


@click.command(name="analyze")
@run_argument
@click.option("--master", metavar="URL", help="A Spark master; without it, this machine does the work.")
@click.option(
    "--captures",
    type=click.Choice(["shared", "send"]),
    help="Whether the cluster sees the run at its path, or gets its files sent; unless given, it is asked.",
)
def command(run_name: str, master: str | None, captures: str | None) -> int:
    """Analyse a run, or all runs of a sweep, and write the report.

    Running it again gives the same answer. Exit codes: 0 passed, 1 an expectation or the fidelity failed, 2
    no such run, or nothing in it to analyse.
    """
    from testbed.campaign.analyses import Workers, analyze
    from testbed.cli.named_run import named

    return analyze(named(run_name), Workers(master, captures))
