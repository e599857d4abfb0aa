"""`cutset history list`: a line for each run, or a JSON object."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from experiments.nights import run_title
from testbed.campaign.outcome import COLOURS, number
from testbed.campaign.sweep_outcome import duration_text
from testbed.cli.output import reader_may_leave

if TYPE_CHECKING:
    import pyarrow as pa

    from analysis.history import History, Where

NOT_MEASURED = "-"
JSON_TEXTS = ("settings", "machine")  # are JSON in the table, and objects here


def show(history: "History", where: "Where", metrics: Sequence[str], limit: int, *, as_json: bool) -> None:
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
    history: "History", where: "Where", metrics: Sequence[str]
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
