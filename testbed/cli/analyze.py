"""`cutset analyze`: from a run's captures to its tables, its summary and its report; may be run again at
any time.
"""

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from experiments.rundir import RunDirectory

EXIT_PASSED = 0
EXIT_FAILED = 1


@click.command(name="analyze")
@click.argument("run_name", metavar="RUN")
@click.option("--master", metavar="URL", help="A Spark master; without it, this machine does the work.")
def command(run_name: str, master: str | None) -> int:
    """Analyse a run and write its report.

    RUN is a path, a name below runs/, or `latest`. Running it again gives the same answer. Exit codes: 0
    passed, 1 an expectation or the fidelity failed, 2 no such run, or nothing in it to analyse.
    """
    from analysis.pipeline import analyze
    from analysis.report import write_report
    from testbed.cli.following import follower
    from testbed.cli.named_run import named_run
    from testbed.cli.outcome import show_outcome

    run = named_run(run_name)
    _check_measured(run)
    click.echo(f"run {run.path}", err=True)
    with follower() as follow:
        summary = analyze(run, master=master, progress=follow.say)
        follow.say("writing the report")
        write_report(run)
    show_outcome(run, run.read_run(), summary)
    return EXIT_PASSED if summary["verdict"] == "passed" else EXIT_FAILED


def _check_measured(run: "RunDirectory") -> None:
    """Raises InputError if the run ended before time 0, so that nothing was measured."""
    from topologies.errors import InputError

    content = run.read_run()
    if not content.get("plan") or not (content.get("times") or {}).get("zero_ns"):
        phase = content.get("phase") or "unknown"
        problem = f"holds nothing to analyse: it ended before its nodes published anything (phase: {phase})"
        raise InputError(str(run.path), None, "", problem)
