"""`cutset analyze`: from a run's captures to its tables, its summary and its report; may be run again at
any time.
"""

import click

from testbed.cli.options import run_arguments


@click.command(name="analyze")
@run_arguments("RUN...")
@click.option("--master", metavar="URL", help="A Spark master; without it, this machine does the work.")
@click.option(
    "--captures",
    type=click.Choice(["shared", "send"]),
    help="Whether the cluster sees the run at its path, or gets its files sent; unless given, it is asked.",
)
def command(run_names: tuple[str, ...], master: str | None, captures: str | None) -> int:
    """Analyse runs, or all runs of sweeps, and write their reports.

    Running it again gives the same answer. All runs named must exist; each is analysed, whatever
    becomes of the others, and Spark is started once. Exit codes, of several the worst: 0 passed, 1 an
    expectation or the fidelity failed, 2 no such run, or nothing in it to analyse, 3 another command makes or
    analyses it, or this machine cannot.
    """
    from testbed.cli.named_run import named

    found = [named(name) for name in run_names]
    if master is None:
        from analysis.jobs.choice import start_ahead
        from experiments.records.rundir import RunDirectory

        start_ahead(run for run in found if isinstance(run, RunDirectory))
    from testbed.campaign.analyses import analyze_all  # while Java starts

    return analyze_all(found, master, captures)
