"""Records as rows of the history's tables."""

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from analysis.errors import AnalysisError
from analysis.history.record import RunRecord, settings_json
from analysis.history.schemas import EXPECTATIONS, METRICS, RUNS, SCHEMA, SCHEMAS

_AS_THEY_ARE = (
    "path", "experiment", "seed", "repeat", "commit", "cutset", "python", "kernel", "links", "place",
    "outcome", "verdict", "valid", "allow_failure", "started_ns", "duration_s", "captures_bytes",
)  # fmt: skip


def rows_of(record: RunRecord, path: str) -> dict[str, pa.Table]:
    """A record's rows in each table. path: of its directory, as the history writes it.

    Raises AnalysisError if a number is too large for its column.
    """
    key = {"schema": SCHEMA, "run": record.run, "suite": record.suite, "entry": record.entry}
    run = {
        **key,
        **{name: getattr(record, name) for name in _AS_THEY_ARE},
        "path": path,
        "settings": settings_json(record.settings),
        "machine": settings_json(record.machine),
        "reasons": list(record.reasons),
        "problems": list(record.problems),
    }
    metrics = (
        {**key, "metric": metric.name, "value": metric.value, "unit": metric.unit, "better": metric.better}
        for metric in record.metrics
    )
    kept = (
        {**key, "text": each.text, "value": each.value, "held": each.held} for each in record.expectations
    )
    return {
        METRICS: _table(METRICS, metrics),
        EXPECTATIONS: _table(EXPECTATIONS, kept),
        RUNS: _table(RUNS, [run]),
    }


def _table(table: str, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    try:
        return pa.Table.from_pylist(list(rows), schema=SCHEMAS[table])
    except (pa.ArrowException, OverflowError) as error:
        raise AnalysisError(f"a row of the history's {table} cannot be written: {error}") from None
