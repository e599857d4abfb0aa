"""`cutset history`: lists and filters the runs of all nights, and removes old captures."""

from pathlib import Path
from typing import Any

import click

from testbed.campaign import exit_codes
from testbed.cli.options import DISK_SIZE, FOLDER, history_option, json_format, run_arguments
from testbed.cli.output import reader_may_leave


class ListOrCommand(click.Group):
    """A group that takes `cutset history --suite quick` for `cutset history list --suite quick`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert `list` if the arguments have no command's name."""
        if not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names):
            args = ["list", *args]
        return super().parse_args(ctx, args)


@click.group(name="history", cls=ListOrCommand, subcommand_metavar="[list] [OPTIONS]  |  add  |  prune")
def command() -> None:
    """List the runs of all nights, add runs, and remove old captures.

    \b
    cutset history                       the latest runs; `cutset history list --help` has the filters
    cutset history --suite quick --metric latency.p95_ms
    cutset history prune --keep 50GB     remove old captures until the rest fits; numbers stay
    """


@command.command(name="list", short_help="Show runs; this is what `cutset history` does.")
@history_option
@click.option("--suite", help="Runs of this suite.")
@click.option("--entry", help="Runs of this entry of a suite.")
@click.option("--experiment", help="Runs of this experiment.")
@click.option("--since", metavar="DATE", help="Runs of this night and later ones.")
@click.option("--until", metavar="DATE", help="Runs of this night and earlier ones.")
@click.option(
    "--verdict",
    "verdicts",
    multiple=True,
    type=click.Choice(["passed", "failed", "invalid", "crashed"]),
    help="Runs with this verdict; may be repeated.",
)
@click.option(
    "--metric", "metrics", multiple=True, metavar="PATH", help="Also show this number, as latency.p95_ms."
)
@click.option(
    "--limit",
    type=click.IntRange(0),
    default=40,
    show_default=True,
    help="Number of latest runs shown; 0 is all.",
)
@json_format("one object a line")
def list_(
    history: Path,
    verdicts: tuple[str, ...],
    metrics: tuple[str, ...],
    limit: int,
    as_json: bool,
    **asked: Any,
) -> int:
    """Show the history's runs, the latest last.

    Exit codes: 0 shown, 1 some files of the history cannot be read, and are named, 2 bad input.
    """
    from analysis.history import HistoryFilter
    from testbed.campaign.texts.history_text import opened, print_problems, show

    for option in ("since", "until"):
        _check_night(f"--{option}", asked[option])
    found = opened(history)
    with reader_may_leave():
        show(found, HistoryFilter(**asked, verdicts=verdicts or None), metrics, limit, as_json=as_json)
    return exit_codes.FAILED if print_problems(found) else exit_codes.FINE


@command.command(name="add", short_help="Add runs that were made by hand.")
@run_arguments("RUN...")
@history_option
@click.option("--suite", default="by-hand", show_default=True, help="The suite to which they are added.")
@click.option(
    "--entry", help="The suite's entry.  [default: the experiment's name with its changed settings]"
)
@click.option(
    "--night", metavar="DATE", help="The night to which they are added.  [default: when each was started]"
)
def add(run_names: tuple[str, ...], history: Path, suite: str, entry: str | None, night: str | None) -> int:
    """Add runs to the history, so that later ones are compared with them.

    Runs of the same experiment with the same settings, topology, links and backend form one series. Exit
    codes: 0 added, or in the history already, 2 no such run, or not analysed; all others are added.
    """
    from testbed.campaign.recording import RunsOutsideNights
    from testbed.cli.named_run import named_run
    from topologies.errors import InputError

    _check_night("--night", night)
    by_hand, code = RunsOutsideNights(history, suite, entry, night), exit_codes.FINE
    for run in [named_run(name) for name in run_names]:
        try:
            counted, added = by_hand.add(run)
        except InputError as error:
            click.echo(f"cutset: {error}", err=True)
            code = exit_codes.BAD_INPUT
            continue
        click.echo(f"{run.name}: {'added to' if added else 'is already in'} the night {counted}")
    return code


@command.command(name="prune", short_help="Remove old captures until the rest fits a budget.")
@history_option
@click.option(
    "--out",
    "runs",
    type=FOLDER,
    help="The folder of its runs; nothing elsewhere is removed.  [default: runs/ beside the history]",
)
@click.option("--keep", "keep_bytes", type=DISK_SIZE, required=True, help="The disk budget, as 50GB.")
@click.option("--dry", is_flag=True, help="Only show what would be removed.")
def prune(history: Path, runs: Path | None, keep_bytes: int, dry: bool) -> int:
    """Remove parts of the history's runs until they take no more than SIZE.

    Leftovers of torn runs are removed first; then captures, those of the oldest run first; then tables,
    records and figures; then pages. run.json and summary.json stay, and so does the history: no number is
    lost. Exit codes: 0 the rest fits, 1 it does not fit, 2 bad input.
    """
    from experiments.records.rundir import RUNS
    from testbed.campaign.texts.history_text import make_room, opened, print_problems

    found = opened(history)
    fits = make_room(found, runs or history.absolute().parent / RUNS, keep_bytes, dry=dry)
    print_problems(found)
    return exit_codes.FINE if fits else exit_codes.FAILED


def _check_night(option: str, night: str | None) -> None:
    from analysis.history.record import known_night
    from topologies.errors import InputError

    if night is not None and not known_night(night):
        raise InputError(option, None, "", f"{night} is not a date, such as 2026-03-14")
