"""`cutset history`: the runs of all nights, listed and filtered; room made on the disk."""

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from experiments.nights import run_title
from testbed.campaign import exit_codes
from testbed.campaign.night_options import kept_bytes
from testbed.campaign.outcome import COLOURS, number
from testbed.cli.options import history_option, run_arguments
from testbed.cli.output import reader_may_leave

if TYPE_CHECKING:
    import pyarrow as pa

    from analysis.history import History, HistoryFilter

NOT_MEASURED = "-"
JSON_TEXTS = ("settings", "machine")  # are JSON in the table, and objects here


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
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
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

    for option in ("since", "until"):
        _check_night(f"--{option}", asked[option])
    open_backend = _opened(history)
    show(open_backend, HistoryFilter(**asked, verdicts=verdicts or None), metrics, limit, as_json=as_json)
    return _tell_problems(open_backend)


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
    from testbed.campaign.recording import record
    from testbed.cli.named_run import named_run
    from topologies.errors import InputError

    _check_night("--night", night)
    open_backend, code = History(history), exit_codes.FINE
    for run in [named_run(name) for name in run_names]:
        try:
            kept = record(open_backend, run, suite, entry, night)
        except InputError as error:
            click.echo(f"cutset: {error}", err=True)
            code = exit_codes.BAD_INPUT
            continue
        added = open_backend.append(kept)
        click.echo(f"{run.name}: {'added to' if added else 'is there already, in'} the night {kept.night}")
    return code


@command.command(name="prune", short_help="Remove old captures until all fits a budget.")
@history_option
@click.option("--keep", metavar="SIZE", required=True, help="What may stay on the disk, as 50GB.")
@click.option("--dry", is_flag=True, help="Only show what would go.")
def prune(history: Path, keep: str, dry: bool) -> int:
    """Remove parts of the history's runs until they take no more than SIZE.

    What torn runs left goes first; then captures, those of the oldest run before others; then tables, records
    and figures; then pages. run.json and summary.json stay, and so does the history: no number is lost. Exit
    codes: 0 it fits, 1 it does not even so, 2 bad input.
    """
    budget_bytes = kept_bytes(keep)
    open_backend = _opened(history)
    fits = _prune(open_backend, budget_bytes, dry=dry)
    _tell_problems(open_backend)
    return exit_codes.FINE if fits else exit_codes.FAILED


def _opened(folder: Path) -> "History":
    """Raises InputError if there is no history."""
    from analysis.history import History
    from topologies.errors import InputError

    history = History(folder)
    if not history.nights():
        problem = "holds no history yet: `cutset nightly quick` makes one, and `cutset history add RUN` too"
        raise InputError(str(folder), None, "", problem)
    return history


def _check_night(option: str, night: str | None) -> None:
    from analysis.history.record import known_night
    from topologies.errors import InputError

    if night is not None and not known_night(night):
        raise InputError(option, None, "", f"{night} is no date: write it as 2026-03-14")


def _tell_problems(history: "History") -> int:
    """Say which files were skipped; the exit code."""
    for problem in history.problems:
        click.echo(f"cutset: {problem}", err=True)
    return exit_codes.FAILED if history.problems else exit_codes.FINE


def _prune(history: "History", budget_bytes: int, *, dry: bool) -> bool:
    """Returns whether it fits now, or would. dry: only show it. Raises InputError if something cannot go."""
    from analysis.history.pruning import PARTS, plan_pruning, remove
    from topologies.errors import InputError

    plan = plan_pruning(history, budget_bytes)
    for problem in plan.untouched:
        click.echo(f"cutset: {problem}: left as it is", err=True)
    sums: dict[str, int] = defaultdict(int)
    for removal in plan.removals:
        if not dry:
            try:
                remove(removal)
            except OSError as error:
                raise InputError(
                    str(removal.run.path), None, "", f"its {removal.part} cannot be removed: {error.strerror}"
                ) from None
        sums[removal.part] += removal.bytes
        click.echo(f"{removal.run.name}: {removal.part} ({size(removal.bytes)})")
    parts = ", ".join(f"{part} {size(sums[part])}" for part in PARTS if sums[part])
    verb = "would go" if dry else "went"
    click.echo(f"{verb}: {parts or 'nothing'}")
    click.echo(f"{'would stay' if dry else 'stays'}: {size(plan.after)} of {size(plan.before)}")
    if plan.after > budget_bytes:
        click.echo(f"cutset: no more may go: what stays takes more than {size(budget_bytes)}", err=True)
    return plan.after <= budget_bytes


def size(count: float) -> str:
    """Bytes with three digits and a unit, as `1.58 GB`."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.5:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:,.3g} TB" if count < 999.5 else f"{count:,.0f} TB"


def show(
    history: "History", where: "HistoryFilter", metrics: Sequence[str], limit: int, *, as_json: bool
) -> None:
    """Print the latest `limit` runs that are meant, or all if it is 0, and these metrics of them.

    Raises InputError if no run has such a metric.
    """
    runs = history.runs(where)
    shown = runs.slice(max(0, runs.num_rows - limit)) if limit else runs
    values = _values(history, where, metrics)
    with reader_may_leave():
        if as_json:
            _show_json(shown, values)
            return
        _show_lines(shown, metrics, values)
        hidden = runs.num_rows - shown.num_rows
        ones = "one is" if hidden == 1 else "ones are"
        more = f"; {hidden:,} earlier {ones} not shown (--limit 0 shows all)" if hidden else ""
        click.echo(_summary(runs) + more)


def _values(
    history: "History", where: "HistoryFilter", metrics: Sequence[str]
) -> dict[tuple[str, str], dict[str, tuple[float, str]]]:
    """Value and unit of each metric, by night and run."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from topologies.errors import InputError
    from topologies.strict import suggestion

    if not metrics:
        return {}
    rows = history.metrics(where)
    known = set(pc.unique(rows["metric"]).to_pylist())
    for metric in metrics:
        if metric not in known and known:
            raise InputError("--metric", None, "", f"no run has {metric}{suggestion(metric, sorted(known))}")
    found: dict[tuple[str, str], dict[str, tuple[float, str]]] = {}
    for row in rows.filter(pc.is_in(rows["metric"], pa.array(metrics))).to_pylist():
        found.setdefault((row["night"], row["run"]), {})[row["metric"]] = (row["value"], row["unit"] or "")
    return found


def _show_json(runs: "pa.Table", values: dict[tuple[str, str], dict[str, tuple[float, str]]]) -> None:
    for row in runs.to_pylist():
        measured = values.get((row["night"], row["run"]), {})
        for name in JSON_TEXTS:
            row[name] = json.loads(row[name] or "{}")
        extra = {"metrics": {name: value for name, (value, _) in measured.items()}} if values else {}
        click.echo(json.dumps({**row, **extra}))


def _show_lines(
    runs: "pa.Table", metrics: Sequence[str], values: dict[tuple[str, str], dict[str, tuple[float, str]]]
) -> None:
    from testbed.campaign.campaign_text import duration_text

    units = {name: unit for found in values.values() for name, (_, unit) in found.items()}
    heads = ["night", "suite", "entry", "verdict", *(_head(name, units) for name in metrics), "took", "run"]
    lines = []
    for row in runs.to_pylist():
        measured = values.get((row["night"], row["run"]), {})
        numbers = [number(measured[name][0]) if name in measured else NOT_MEASURED for name in metrics]
        took = duration_text(row["duration_s"]) if row["duration_s"] else NOT_MEASURED
        entry = run_title(row["entry"], row["repeat"])
        lines.append([row["night"], row["suite"], entry, row["verdict"], *numbers, took, row["run"]])
    widths = [max(map(len, column)) for column in zip(heads, *lines, strict=True)]
    right = range(4, len(heads) - 1)
    for row_number, line in enumerate([heads, *lines]):
        cells = [
            text.rjust(width) if column in right else text.ljust(width)
            for column, (text, width) in enumerate(zip(line, widths, strict=True))
        ]
        colour: dict[str, Any] = {"bold": True} if not row_number else {}
        if row_number:
            cells[3] = click.style(cells[3], fg=COLOURS.get(line[3]))
        click.echo(click.style("  ".join(cells).rstrip(), **colour))


def _head(metric: str, units: dict[str, str]) -> str:
    """The metric, with its unit where its name does not end with it."""
    unit = units.get(metric, "")
    return metric if not unit or metric.endswith((f"_{unit}", "_per_s", f".{unit}")) else f"{metric} ({unit})"


def _summary(runs: "pa.Table") -> str:
    nights = len(set(runs["night"].to_pylist()))
    verdicts = Counter(runs["verdict"].to_pylist())
    counts = ", ".join(f"{verdicts[verdict]:,} {verdict}" for verdict in COLOURS if verdicts[verdict])
    count = runs.num_rows
    if not count:
        return "no such runs"
    return f"{count:,} run{'s' * (count != 1)} of {nights} night{'s' * (nights != 1)}: {counts}"
