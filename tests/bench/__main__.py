"""`make bench`: measure what Cutset promises about speed, print it as a table and write it as JSON.

Each module of `SUBJECTS` has a `measure()` that returns rows; this only runs them one after another, on a
machine that should be otherwise idle, and puts the machine's description above. "asked" is the number that
the project set itself. Most rows neither pass nor fail, as shared machines are noisy; where one says that
what was asked is missed, the exit code is 1.
"""

import argparse
import importlib
import json
import platform
import sys
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console
from rich.table import Table

SUBJECTS = (
    "packets",
    "scale",
    "links",
    "processes",
    "peak",
    "hosts",
    "regressions",
    "simulator",
    "zone_visits",
    "commands",
)
NAMED = ("hunt", "native")
"""Measured only by name: hunts take hours, and `native` needs `make native`."""
HERE = Path(__file__).parent
MODULES = {
    file.stem: ".".join(("tests", *file.relative_to(HERE.parent).with_suffix("").parts))
    for file in HERE.rglob("*.py")
}


def machine() -> dict[str, Any]:
    """Return the machine of the measurement."""
    model = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    return {
        "processor": model,
        "cpus": psutil.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "kernel": platform.release(),
        "python": platform.python_version(),
    }


def figure(value: float | None) -> str:
    """Format a number with about three significant digits."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def main() -> int:
    """Run the benchmarks named on the command line, or all; the exit code."""
    parser = argparse.ArgumentParser(prog="make bench ARGS=", description=__doc__.splitlines()[0])
    parser.add_argument(
        "subjects",
        nargs="*",
        metavar="SUBJECT",
        help=f"some of {', '.join(SUBJECTS)}; all of these if none; or {', '.join(NAMED)}",
    )
    parser.add_argument("--json", type=Path, default=Path("bench.json"), help="where to write the rows")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.subjects) - {*SUBJECTS, *NAMED})
    if unknown:
        parser.error(f"unknown subject {unknown[0]!r}; there are {', '.join((*SUBJECTS, *NAMED))}")

    console, progress = Console(), Console(stderr=True)
    description = machine()
    console.print("  ".join(f"{key} {value}" for key, value in description.items()), soft_wrap=True)
    rows: list[dict[str, Any]] = []
    for subject in arguments.subjects or SUBJECTS:
        progress.print(f"measuring {subject} …")
        measured = importlib.import_module(MODULES[subject]).measure()
        rows.extend({"subject": subject, **row} for row in measured)
    table = Table("subject", "what", "measured", "asked", "unit")
    for column in (2, 3):
        table.columns[column].justify = "right"
    for row in rows:
        asked = row.get("asked")
        table.add_row(
            row["subject"],
            row["name"],
            figure(row["value"]),
            asked if isinstance(asked, str) else figure(asked),
            row["unit"],
        )
    console.print(table)
    arguments.json.write_text(json.dumps({"machine": description, "rows": rows}, indent=2) + "\n")
    console.print(f"written to {arguments.json}")
    missed = [row for row in rows if row.get("missed")]
    for row in missed:
        console.print(f"missed: {row['subject']}: {row['name']}", style="red")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
