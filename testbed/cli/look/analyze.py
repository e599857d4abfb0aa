"""`cutset analyze`: makes the tables, the summary and the report from a run's captures; repeatable."""

import click

from testbed.cli.options import run_arguments


@click.command(name="analyze")
@run_arguments("RUN...")
@click.option(
    "--master",
    metavar="URL",
    help="A Spark master whose executors see the run at its path; without it, this machine does the work.",
)
def command(run_names: tuple[str, ...], master: str | None) -> int:
    """Analyse runs, or all runs of sweeps, and write their reports.

    Repeating it gives the same results. All named runs must exist. If one fails, the others are still
    analysed. Spark is started once. Exit codes, the worst of all runs: 0 passed, 1 an expectation or the
    fidelity check failed, 2 no such run, or nothing in it to analyse, 3 another command makes or analyses
    it, or this machine cannot.
    """
    from testbed.cli.named_run import named

    found = [named(name) for name in run_names]
    if master is None:
        from analysis.jobs.choice import start_spark_early
        from experiments.records.rundir import RunDirectory

        start_spark_early(run for run in found if isinstance(run, RunDirectory))
    from analysis.arrow_alone import keep_pandas_out  # while Java starts

    keep_pandas_out()
    from testbed.campaign.analyses import analyze_all

    return analyze_all(found, master)
