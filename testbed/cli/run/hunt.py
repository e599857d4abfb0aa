"""`cutset hunt`: searches for the smallest set of faults that breaks a system's contract."""

import re
from pathlib import Path

import click

from experiments.backend_names import LOCAL
from testbed.cli.options import FOLDER, ExperimentArguments, TextParameter

UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600}


def _length(text: str) -> float:
    """Parse `90s`, `10m` or `2h` as seconds."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|m|min|h)", text.strip(), re.ASCII)
    if found is None:
        raise ValueError(text)
    seconds = float(found[1]) * UNITS[found[2]]
    if not seconds:
        raise ValueError(text)
    return seconds


LENGTH = TextParameter("TIME", _length, "time, as 90s, 10m or 2h")
USUAL_S = 600.0
ONLY_HUNTING = {
    "experiment": "EXPERIMENT",
    "overrides": "--set",
    "topology": "--topology",
    "seed": "--seed",
    "seconds": "--for",
    "runs": "--runs",
    "findings": "--findings",
    "folder": "--out",
    "workers": "--workers",
}
"""Parameters that are meaningless with --replay, by their names on the command line."""


@click.command(name="hunt")
@click.argument("experiment", required=False)
@click.option(
    "--set", "overrides", multiple=True, metavar="PATH=VALUE", help="Override a field; may be repeated."
)
@click.option("--topology", help="Another topology than the experiment's: a name or a file.")
@click.option("--seed", type=click.IntRange(0), help="The seed of the hunt.  [default: 1]")
@click.option(
    "--for",
    "seconds",
    type=LENGTH,
    help="Stop after this time, all sessions together, as 10m.  [default: 10m] Violations found until then "
    "are still shrunk.",
)
@click.option(
    "--runs",
    type=click.IntRange(1, 10_000_000),
    help="Stop after this number of runs, all sessions together.",
)
@click.option(
    "--findings", type=click.IntRange(1, 100), help="Stop after this number of findings in this session."
)
@click.option(
    "-o",
    "--out",
    "folder",
    type=FOLDER,
    help="The hunt's folder; an existing hunt is continued.  [default: a new one below runs/hunts]",
)
@click.option(
    "--workers", type=click.IntRange(1, 1024), help="Number of processes.  [default: one for each processor]"
)
@click.option(
    "--replay",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="FINDING",
    help="Instead of hunting, run a finding's experiment again and show how often it breaks.",
)
@click.option(
    "--times",
    type=click.IntRange(1, 1000),
    default=5,
    show_default=True,
    help="Number of runs with --replay.",
)
@click.option(
    "--on",
    "backend",
    metavar="PLACE",
    help="simulator, or local (real processes).  [default: simulator if the system can run "
    "there] With --replay any backend.  [default: local]",
)
@click.option("--build", hidden=True, help="The function that makes the machines, as module:function.")
@click.pass_context
def command(  # noqa: PLR0917 (click passes them by name)
    context: click.Context,
    experiment: str | None,
    overrides: tuple[str, ...],
    topology: str | None,
    seed: int | None,
    seconds: float | None,
    runs: int | None,
    findings: int | None,
    folder: Path | None,
    workers: int | None,
    replay: Path | None,
    times: int,
    backend: str | None,
    build: str | None,
) -> int:
    """Search for faults that break a system's contract, and shrink them to the smallest set that does.

    EXPERIMENT is a name (see `cutset list`) or a YAML file, best one with a `nemesis`, which says what may go
    wrong. Runs in virtual time, on all processors, with disturbances of links, processes and regions,
    settings and sizes drawn for each run. Systems of programs run on real processes, one case after the
    other.

    Each finding is a folder with an experiment that replays it, one sentence and a diagram of the messages
    (docs/hunt.md).

    With --replay a finding is run again on real processes, several times; the result is a rate with its
    interval.

    Exit codes: 0 no findings, 1 findings, 2 bad input, 3 this machine cannot do it, or no run was usable,
    130 interrupted; the results until then are kept.
    """
    if replay is not None:
        unfit = [each for each in ONLY_HUNTING if _is_given(context, each)]
        if unfit:
            raise click.UsageError(f"--replay takes no {ONLY_HUNTING[unfit[0]]}: it does not hunt.", context)
        return _again(replay, times, backend or LOCAL)
    if _is_given(context, "times"):
        raise click.UsageError("--times is for --replay FINDING.", context)
    if experiment is None:
        raise click.UsageError("Missing argument 'EXPERIMENT' (or --replay FINDING).", context)
    from experiments.hunting.huntable import default_backend
    from testbed.campaign.hunting.hunt import HuntLimits
    from testbed.campaign.hunting.start import HuntRequest, hunt

    given = ExperimentArguments(experiment, overrides, topology=topology)
    chosen = given.read().experiment
    usual = USUAL_S if runs is None and findings is None else None
    modules = (context.parent.params.get("modules") or ()) if context.parent is not None else ()
    return hunt(
        HuntRequest(
            experiment=chosen,
            folder=folder,
            limits=HuntLimits(seconds if seconds is not None else usual, runs, findings),
            seed=1 if seed is None else seed,
            workers=workers,
            build=build,
            modules=modules,
            words=_words(experiment, overrides, topology, seed, backend),
            place=backend or default_backend(chosen),
        )
    )


def _is_given(context: click.Context, parameter: str) -> bool:
    return context.get_parameter_source(parameter) is not click.core.ParameterSource.DEFAULT


def _words(
    experiment: str,
    overrides: tuple[str, ...],
    topology: str | None,
    seed: int | None,
    place: str | None,
) -> list[str]:
    """Return the arguments that determine the hunt, as the user gave them."""
    words = [experiment, *(word for each in overrides for word in ("--set", each))]
    words += [] if topology is None else ["--topology", topology]
    words += [] if seed is None else ["--seed", str(seed)]
    words += [] if place is None else ["--on", place]
    return words


def _again(folder: Path, times: int, backend: str) -> int:
    """Replay a finding."""
    from testbed.campaign.backend_selection import check_backend
    from testbed.campaign.hunting.replaying import replay

    check_backend(backend)
    return replay(folder, times, backend)
