"""`cutset history`: the runs of all nights, listed and filtered; room made on the disk."""

from pathlib import Path
from typing import Any

import click

from testbed.campaign import exit_codes
from testbed.campaign.nights.night_options import kept_bytes
from testbed.cli.options import history_option, json_format, run_arguments
from testbed.cli.output import reader_may_leave


class ListOrCommand(click.Group):
    """`cutset history --suite quick` is `cutset history list --suite quick`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Without a command's name it is `list`."""
        if not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names):
            args = ["list", *args]
        return super().parse_args(ctx, args)


@click.group(name="history", cls=ListOrCommand, subcommand_metavar="[list] [OPTIONS]  |  add  |  prune")
def command() -> None:
    """List the runs of all nights, add to them, and make room.

    \b
    cutset history                       the latest runs; `cutset history list --help` has the filters
    cutset history --suite quick --metric latency.p95_ms
    cutset history prune --keep 50GB     remove old captures until all fits; numbers stay
    """


@command.command(name="list", short_help="Show runs; this is what `cutset history` does.")
@history_option
@click.option("--suite", help="Of this suite.")
@click.option("--entry", help="Of this entry of a suite.")
@click.option("--experiment", help="Of this experiment.")
@click.option("--since", metavar="DATE", help="Of this night and later ones.")
@click.option("--until", metavar="DATE", help="Of this night and earlier ones.")
@click.option(
    "--verdict",
    "verdicts",
    multiple=True,
    type=click.Choice(["passed", "failed", "invalid", "crashed"]),
    help="With this verdict; may be repeated.",
)
@click.option(
    "--metric", "metrics", multiple=True, metavar="PATH", help="Also this number, as latency.p95_ms."
)
@click.option(
    "--limit", type=click.IntRange(0), default=40, show_default=True, help="The latest so many; 0 is all."
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
    from testbed.campaign.texts.history_text import opened, show, tell_problems

    for option in ("since", "until"):
        _check_night(f"--{option}", asked[option])
    found = opened(history)
    with reader_may_leave():
        show(found, HistoryFilter(**asked, verdicts=verdicts or None), metrics, limit, as_json=as_json)
    return exit_codes.FAILED if tell_problems(found) else exit_codes.FINE


@command.command(name="add", short_help="Add runs that were made by hand.")
@run_arguments("RUN...")
@history_option
@click.option("--suite", default="by-hand", show_default=True, help="The suite that they count to.")
@click.option("--entry", help="Its entry.  [default: the experiment's name, and what was set of it]")
@click.option(
    "--night", metavar="DATE", help="The night that they count to.  [default: when each was started]"
)
def add(run_names: tuple[str, ...], history: Path, suite: str, entry: str | None, night: str | None) -> int:
    """Add runs to the history, so that later ones are held against them.

    Runs of the same experiment with the same settings, topology, links and place are one series. Exit codes:
    0 added, or there already, 2 no such run, or one that was not analysed: all others are added.
    """
    from analysis.history import History
    from testbed.campaign.recording import RunsByHand
    from testbed.cli.named_run import named_run
    from topologies.errors import InputError

    _check_night("--night", night)
    by_hand, code = RunsByHand(History(history), suite, entry, night), exit_codes.FINE
    for run in [named_run(name) for name in run_names]:
        try:
            counted, added = by_hand.add(run)
        except InputError as error:
            click.echo(f"cutset: {error}", err=True)
            code = exit_codes.BAD_INPUT
            continue
        click.echo(f"{run.name}: {'added to' if added else 'is there already, in'} the night {counted}")
    return code


@command.command(name="prune", short_help="Remove old captures until all fits a budget.")
@history_option
@click.option(
    "--out",
    "runs",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where its runs are kept: nothing goes that stands elsewhere.  [default: runs/ beside the history]",
)
@click.option("--keep", metavar="SIZE", required=True, help="What may stay on the disk, as 50GB.")
@click.option("--dry", is_flag=True, help="Only show what would go.")
def prune(history: Path, runs: Path | None, keep: str, dry: bool) -> int:
    """Remove parts of the history's runs until they take no more than SIZE.

    What torn runs left goes first; then captures, those of the oldest run before others; then tables, records
    and figures; then pages. run.json and summary.json stay, and so does the history: no number is lost. Exit
    codes: 0 it fits, 1 it does not even so, 2 bad input.
    """
    from experiments.records.rundir import RUNS
    from testbed.campaign.texts.history_text import make_room, opened, tell_problems

    budget_bytes = kept_bytes(keep)
    found = opened(history)
    fits = make_room(found, runs or history.absolute().parent / RUNS, budget_bytes, dry=dry)
    tell_problems(found)
    return exit_codes.FINE if fits else exit_codes.FAILED


def _check_night(option: str, night: str | None) -> None:
    from analysis.history.record import known_night
    from topologies.errors import InputError

    if night is not None and not known_night(night):
        raise InputError(option, None, "", f"{night} is no date: write it as 2026-03-14")
