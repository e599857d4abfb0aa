"""Texts of `cutset history`: its runs and metrics, and the parts of runs that pruning removes."""

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pyarrow.compute as pc

from analysis.history import History, HistoryFilter
from analysis.history.pruning import PARTS, plan_pruning, remove
from experiments.campaigns.nights import run_title
from testbed.campaign.in_use import sole_writer
from testbed.campaign.texts.campaign_text import duration_text
from testbed.campaign.texts.outcome import COLOURS, number
from topologies.errors import InputError
from topologies.strict import suggestion

NOT_MEASURED = "-"
JSON_TEXTS = ("settings", "machine")  # JSON texts in the table, objects here


def opened(folder: Path) -> History:
    """Open the history in a folder. Raises InputError if there is none."""
    history = History(folder)
    if not history.nights():
        problem = "holds no history yet: create one with `cutset nightly quick` or `cutset history add RUN`"
        raise InputError(str(folder), None, "", problem)
    return history


def print_problems(history: History) -> bool:
    """Print which files cannot be read, and return whether there are any."""
    for problem in history.problems:
        click.echo(f"cutset: {problem}", err=True)
    return bool(history.problems)


def make_room(history: History, runs: Path, budget_bytes: int, *, dry: bool) -> bool:
    """Remove parts of the history's runs and return whether the rest fits the budget.

    runs: the folder of the runs; nothing outside it is removed. dry: only print what would be removed. Raises
    InputError if a part cannot be removed, MachineError if another command uses a run.
    """
    plan = plan_pruning(history, runs, budget_bytes)
    for problem in plan.untouched:
        click.echo(f"cutset: {problem}: left as it is", err=True)
    sums: dict[str, int] = defaultdict(int)
    for removal in plan.removals:
        if not dry:
            try:
                with sole_writer(removal.run.path):
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
        click.echo(
            f"cutset: nothing more can be removed: the rest takes more than {size(budget_bytes)}", err=True
        )
    return plan.after <= budget_bytes


def size(count: float) -> str:
    """Return bytes with three digits and a unit, as `1.58 GB`."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.5:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:,.3g} TB" if count < 999.5 else f"{count:,.0f} TB"


def show(
    history: History, where: HistoryFilter, metrics: Sequence[str], limit: int, *, as_json: bool
) -> None:
    """Print the latest `limit` matching runs (0: all) with these metrics.

    Raises InputError if no run has such a metric.
    """
    runs = history.runs(where)
    shown = runs.slice(max(0, runs.num_rows - limit)) if limit else runs
    values = _values(history, where, metrics)
    if as_json:
        _show_json(shown, values)
        return
    _show_lines(shown, metrics, values)
    hidden = runs.num_rows - shown.num_rows
    ones = "one is" if hidden == 1 else "ones are"
    more = f"; {hidden:,} earlier {ones} not shown (--limit 0 shows all)" if hidden else ""
    click.echo(_summary(runs) + more)


def _values(
    history: History, where: HistoryFilter, metrics: Sequence[str]
) -> dict[tuple[str, str], dict[str, tuple[float, str]]]:
    """Return the value and unit of each metric, by night and run."""
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


def _show_json(runs: pa.Table, values: dict[tuple[str, str], dict[str, tuple[float, str]]]) -> None:
    for row in runs.to_pylist():
        measured = values.get((row["night"], row["run"]), {})
        for name in JSON_TEXTS:
            row[name] = json.loads(row[name] or "{}")
        large_seed = row.pop("large_seed")
        row["seed"] = int(large_seed) if large_seed else row["seed"]
        extra = {"metrics": {name: value for name, (value, _) in measured.items()}} if values else {}
        click.echo(json.dumps({**row, **extra}))


def _show_lines(
    runs: pa.Table, metrics: Sequence[str], values: dict[tuple[str, str], dict[str, tuple[float, str]]]
) -> None:
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
    """Return the metric, followed by its unit unless the name ends with it."""
    unit = units.get(metric, "")
    return metric if not unit or metric.endswith((f"_{unit}", "_per_s", f".{unit}")) else f"{metric} ({unit})"


def _summary(runs: pa.Table) -> str:
    nights = len(set(runs["night"].to_pylist()))
    verdicts = Counter(runs["verdict"].to_pylist())
    counts = ", ".join(f"{verdicts[verdict]:,} {verdict}" for verdict in COLOURS if verdicts[verdict])
    count = runs.num_rows
    if not count:
        return "no such runs"
    return f"{count:,} run{'s' * (count != 1)} of {nights} night{'s' * (nights != 1)}: {counts}"
