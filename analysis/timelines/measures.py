"""A system's own measurements (`node.core.measures`): a table of every value, and figures for each name."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analysis.arrays import Floats, Ints, concatenated
from analysis.capture.clocks.machine_clocks import ONE_CLOCK, MachineClocks
from analysis.errors import AnalysisError
from analysis.timelines import schemas
from node.core.measures import BlockReader

Rows = tuple[Sequence[str], Ints, Floats]
"""Names of columns, the rows' times, and a column of values each."""


def read_measures(
    host: str, path: Path, clocks: MachineClocks = ONE_CLOCK, reader: BlockReader | None = None
) -> dict[str, list[Rows]]:
    """Return the measurements of a host's process by name, in order; times by the run's reference clock.

    reader: has read the file up to some byte, and continues there. Raises AnalysisError if the file has no
    measures.
    """
    try:
        return measures_in(host, _rest(path, reader.read_bytes if reader else 0), clocks, reader)
    except (ValueError, KeyError) as error:
        raise AnalysisError(f"{path}: {error}") from None


def measures_in(
    host: str, data: bytes, clocks: MachineClocks = ONE_CLOCK, reader: BlockReader | None = None
) -> dict[str, list[Rows]]:
    """Return the measurements in the content of such a file. Raises ValueError or KeyError if it is
    invalid.
    """
    found: defaultdict[str, list[Rows]] = defaultdict(list)
    for (name, *columns), rows, cells in (reader or BlockReader()).read(data):
        t_ns = np.frombuffer(cells, ">i8", rows).astype(np.int64)
        values = np.frombuffer(cells, ">f8", rows * len(columns), t_ns.nbytes)
        clock = clocks.clock_of_host(host)
        corrected = t_ns if clock.is_reference else clock.corrected(t_ns)
        found[name].append((columns, corrected, values.reshape(len(columns), rows).astype(float)))
    return found


def _rest(path: Path, from_byte: int) -> bytes:
    if not path.is_file():
        return b""
    with path.open("rb") as file:
        file.seek(from_byte)
        return file.read()


def table(host: str, measured: dict[str, list[Rows]]) -> pa.Table:
    """Return rows of `schemas.MEASURES`, one per value."""
    parts = [
        pa.table(
            [
                pa.repeat(pa.scalar(host), len(t_ns)),
                pa.repeat(pa.scalar(name), len(t_ns)),
                pa.repeat(pa.scalar(column), len(t_ns)),
                pa.array(t_ns),
                pa.array(values),
            ],
            schema=schemas.MEASURES,
        )
        for name, blocks in measured.items()
        if not name.startswith("_")  # for the analysis only: `node.core.content.content`
        for columns, t_ns, rows in blocks
        for column, values in zip(columns, rows, strict=True)
    ]
    return concatenated(parts, schemas.MEASURES)


def figures(values: pa.Table) -> pa.Table:
    """Return rows of `schemas.MEASURED` from one host's values, sorted by time. Values that are not finite
    are ignored.
    """
    ordered = values.filter(pc.is_finite(values.column("number"))).sort_by("t_ns")
    kinds = ("count", "sum", "min", "max", "last")
    groups = ordered.group_by(["name", "value"], use_threads=False)
    found = groups.aggregate([*(("number", kind) for kind in kinds), ("t_ns", "max")])
    chosen = found.select(["name", "value", *(f"number_{kind}" for kind in kinds), "t_ns_max"])
    return chosen.rename_columns(schemas.MEASURED.names).cast(schemas.MEASURED)


def summary(found: Sequence[dict[str, Any]]) -> dict[str, dict[str, dict[str, float]]]:
    """Return the section `measures` of summary.json: count, mean, min, max and last of each name and value.

    found: rows of `schemas.MEASURED`, of all hosts.
    """
    groups: defaultdict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in sorted(found, key=lambda row: (row["name"], row["value"], row["last_ns"])):
        groups[row["name"], row["value"]].append(row)
    section: dict[str, dict[str, dict[str, float]]] = {}
    for (name, value), rows in groups.items():
        count = sum(row["count"] for row in rows)
        section.setdefault(name, {})[value] = {
            "count": count,
            "mean": sum(row["sum"] for row in rows) / count,
            "min": min(row["min"] for row in rows),
            "max": max(row["max"] for row in rows),
            "last": rows[-1]["last"],
        }
    return section
