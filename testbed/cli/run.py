"""`cutset run`: plan, run, analyse, report. The only place where the testbed's half and the analysis' half
meet.
"""

import contextlib
import shutil
import signal
import threading
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

import click

if TYPE_CHECKING:
    from experiments.model import Experiment
    from experiments.rundir import RunDirectory
    from testbed.cli.following import Follower
    from testbed.runner.start import Ended

PLACES = ("local",)
ANALYSIS_DISK_BYTES = 64 << 20
EXIT_FINE = 0
EXIT_FAILED = 1
EXIT_INTERRUPTED = 130


@click.command(name="run")
@click.argument("experiment")
@click.option(
    "--set", "overrides", multiple=True, metavar="PATH=VALUE", help="Override a field; may be repeated."
)
@click.option("--topology", help="Another topology than the experiment's: a name or a file.")
@click.option(
    "--links", type=click.Choice(["auto", "netem", "relay"]), default="auto", help="What carries links."
)
@click.option("--on", "place", default="local", help="Where to run.", show_default=True)
@click.option("--seed", type=int, help="Another seed than the experiment's.")
@click.option("--repeat", type=click.IntRange(1, 1000), help="Run so many times.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("runs"),
    help="Where runs are kept.",
    show_default=True,
)
@click.option("--no-analyze", is_flag=True, help="Only run; `cutset analyze` can follow at any time.")
def command(  # noqa: PLR0917 (click passes them by name)
    experiment: str,
    overrides: tuple[str, ...],
    topology: str | None,
    links: str,
    place: str,
    seed: int | None,
    repeat: int | None,
    out: Path,
    no_analyze: bool,
) -> int:
    """Run an experiment, analyse it and write its report.

    EXPERIMENT is a name (see `cutset list`) or a YAML file. Ctrl-C ends the run tidily and analyses what
    there is; a second Ctrl-C ends at once. Exit codes: 0 passed, 1 an expectation or the fidelity failed, 2
    bad input, 3 this machine cannot do it, 130 interrupted.
    """
    from experiments.loader import load_experiment

    _check_place(place)
    signal.signal(signal.SIGTERM, _like_ctrl_c)
    chosen = load_experiment(experiment, [*overrides, *([f"topology={topology}"] if topology else [])])
    if chosen.sweep:
        click.echo("note: the sweep is left out, the experiment runs as it stands", err=True)
    code = EXIT_FINE
    for _ in range(repeat or chosen.repeat):
        code = max(code, _run_once(chosen, links=links, seed=seed, out=out, analyze=not no_analyze))
        if code == EXIT_INTERRUPTED:
            break
    return code


def _run_once(experiment: "Experiment", *, links: str, seed: int | None, out: Path, analyze: bool) -> int:
    from testbed.cli.following import follower
    from testbed.cli.outcome import show_outcome
    from testbed.planning import make_plan
    from testbed.runner.start import carry_out, prepare
    from topologies.loader import load_topology

    topology = load_topology(experiment.topology)
    plan = make_plan(experiment, topology, seed=seed, links_kind=links)
    described = {
        "experiment": experiment.to_json(),
        "topology": topology.model_dump(mode="json", by_alias=True, exclude_none=True),
    }
    run = prepare(out, plan, described)
    click.echo(f"run {run.path}", err=True)
    with follower() as follow:

        def hear(message: dict[str, Any]) -> None:
            follow(message)
            if analyze and message.get("did") == "drained":
                _start_spark_aside()

        ended = carry_out(run, hear)
        summary = _analyze(run, ended, follow) if analyze else None
    show_outcome(run, ended.content, summary)
    if ended.by_user:
        return EXIT_INTERRUPTED
    if summary is None:
        return EXIT_FINE if ended.completed and not analyze else EXIT_FAILED
    return EXIT_FINE if summary["verdict"] == "passed" else EXIT_FAILED


def _analyze(run: "RunDirectory", ended: "Ended", follow: "Follower") -> dict[str, Any] | None:
    """The summary, or None with a line that says why there is none."""
    if not ended.measured:
        follow.say("not analysed: the run ended before its nodes published anything")
        return None
    if shutil.disk_usage(run.path).free < ANALYSIS_DISK_BYTES:
        follow.say(f"not analysed, for want of disk: make some free, then `cutset analyze {run.path}`")
        return None
    from analysis.pipeline import analyze
    from analysis.report import write_report

    summary: dict[str, Any] = analyze(run, master=None, progress=follow.say)
    follow.say("writing the report")
    write_report(run)
    return summary


def _start_spark_aside() -> None:
    """Java needs seconds to start: let it, while the run's last files are closed and nothing is measured
    any more.
    """

    def start() -> None:
        from analysis.errors import AnalysisError
        from analysis.session import spark_session

        # The analysis starts it again, and says what is wrong.
        with contextlib.suppress(AnalysisError):
            spark_session()

    threading.Thread(target=start, name="spark", daemon=True).start()


def _check_place(place: str) -> None:
    from topologies.errors import InputError

    if place not in PLACES:
        raise InputError("--on", None, "", f"there is no place {place}; known: {', '.join(PLACES)}")


def _like_ctrl_c(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
