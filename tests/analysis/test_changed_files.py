"""Changed JSON files of a run, field by field: the analysis and the pages accept them, or refuse them in one
line. `tests.experiments.records.test_run_record` covers code that only reads run.json.
"""

import json
import math
import shutil
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.capture.clocks.machine_clocks import read_on_reference
from analysis.capture.clocks.run_clocks import notes, problems, summary
from analysis.errors import AnalysisError
from analysis.pages.comparing.sides import ComparedRun
from analysis.pages.comparing.text import lines
from analysis.pages.report.clocks import clocks_table
from analysis.pages.report.page import render
from analysis.pages.report.run_reader import TABLES, read_record
from analysis.pages.report.sweep_page import render as render_sweep
from analysis.pages.report.sweep_page import sweep_charts
from analysis.pipeline import analyze_here
from analysis.sweeps import read_sweep
from analysis.timelines.run_metadata import read_metadata
from experiments.campaigns.sweepdir import SweepDirectory
from experiments.records.rundir import RunDirectory
from node.core.deliveries import DeliveryRecord, RecordKind, encode_file_header, encode_record
from testbed.campaign.run_results import PerformedRun, concluded
from tests.analysis.pages.report.report_scenario import Scenario
from tests.analysis.pages.report.synthetic_run import write_run
from tests.analysis.pages.report.synthetic_sweep import SWEEPS
from tests.analysis.timelines.world import COUNTERS, END, ZERO, S, run_json
from tests.campaigns import night_run
from tests.changed_json import WRONG, Json, broken
from topologies.errors import InputError

pytestmark = pytest.mark.slow
EVERY = 101
"""Each so-many-th field is changed for each value, others for other values."""
SHORT = Scenario(duration_s=12.0, cut_s=4.0, restore_s=8.0, switched_s={"r2": 4.98, "r3": 4.71})
"""A run with every table, of a few rows each."""


def silent(_: str) -> None:
    """Discard progress messages."""


def recorded(path: Path) -> RunDirectory:
    """Create a run without captures, with a few events in the logs of drivers and clients."""
    run = RunDirectory(path / "20260101T000000Z-link-failure-0a1b2c")
    run.make()
    for region in range(4):
        for role, kind in (("driver", RecordKind.PUBLISHED), ("client", RecordKind.DELIVERED)):
            batches = [
                DeliveryRecord(region, 10, 1 + 10 * n, ZERO + n * S, n, n, kind, 10) for n in range(END // S)
            ]
            begun = DeliveryRecord(0, 0, 0, ZERO, 0, 0, RecordKind.SESSION, 0)
            run.host_deliveries(f"r{region}-{role}-0").write_bytes(
                encode_file_header() + b"".join(map(encode_record, [begun, *batches]))
            )
    return run


def whole_run(**fields: Any) -> Json:
    probe = {"when": "before", "from": "r0", "to": "r1", "rtt_us": [34_000.0]}
    return run_json(
        "captures=none", counters=[COUNTERS], probes=[probe], versions={"python": "3.11"}, **fields
    )


def work(run: RunDirectory) -> None:
    """Analyse the run and write its page without figures."""
    analyze_here(run, progress=silent)
    record = read_record(run)
    render(record, run)


def test_a_changed_run_json_is_analysed_or_refused(tmp_path: Path) -> None:
    run = recorded(tmp_path)

    def read(content: Json) -> None:
        run.run_json.write_text(json.dumps(content))
        run.read_run()  # what is refused here is refused at once
        work(run)

    refused = (InputError, AnalysisError)
    assert broken(whole_run(), WRONG, read, refused, skip=("topology",), every=EVERY) == []


@pytest.mark.parametrize(
    "times",
    [
        {"zero_ns": ZERO + 100 * S},
        {"zero_ns": ZERO - 100 * S, "started_ns": ZERO},
        {"ended_ns": ZERO - S},
        {"stopped_ns": ZERO, "drained_ns": ZERO - S},
        {"started_ns": None, "zero_ns": 0},
        {"zero_ns": (1 << 62) - 1, "ended_ns": 0},
        dict.fromkeys(("started_ns", "zero_ns", "stopped_ns", "drained_ns", "ended_ns"), 0),
        dict.fromkeys(("started_ns", "zero_ns", "stopped_ns", "drained_ns", "ended_ns"), (1 << 62) - 1),
    ],
)
def test_times_out_of_order_are_analysed_or_refused(tmp_path: Path, times: Json) -> None:
    run, content = recorded(tmp_path), whole_run()
    content["times"] |= times
    content["changes"].reverse()
    run.run_json.write_text(json.dumps(content))
    with suppress(InputError, AnalysisError):
        work(run)


def test_a_changed_summary_json_is_shown_or_refused(tmp_path: Path) -> None:
    run = write_run(tmp_path, replace(SHORT, captures=False))
    content = json.loads(run.summary_json.read_text())
    content["content"] = {"subscriptions": {"mean": 1.5, "p50": 1, "p95": 2, "max": 3, "none": 0.5}}
    content["measures"] = {"queue": {"length": {"count": 3, "mean": 1.5, "last": 2}}}
    content["wan"] = {"messages": 7, "bytes": 700}
    content["latency"]["error_ms"] = 0.1
    content["fidelity"]["notes"] = ["recovery.cut: settled_s: why"]

    def read(content: Json) -> None:
        run.summary_json.write_text(json.dumps(content))
        record = read_record(run)
        render(record, run)
        lines([ComparedRun(letter, "red", run, record) for letter in "AB"])
        concluded(night_run(), PerformedRun(record.run, run.read_summary()), 1.0)

    assert broken(content, WRONG, read, every=EVERY) == []


def test_a_changed_sweep_json_is_shown_or_refused(tmp_path: Path) -> None:
    sweep = SWEEPS["zoo"](tmp_path / "20260101T000000Z-zoo-0a1b2c")
    content = json.loads(sweep.sweep_json.read_text())

    def read(content: Json) -> None:
        sweep.sweep_json.write_text(json.dumps(content))
        found = read_sweep(SweepDirectory.open(sweep.path))
        render_sweep(found, sweep_charts(found))

    assert broken(content, WRONG, read, every=5) == []


def test_a_changed_clocks_json_is_used_or_refused(tmp_path: Path) -> None:
    run = recorded(tmp_path)
    hosts = [host["name"] for host in whole_run()["plan"]["hosts"]]
    machines = [
        {"name": "h0", "hosts": hosts[::2], "zero_ns": ZERO},
        {"name": "h1", "hosts": hosts[1::2], "zero_ns": ZERO},
    ]
    run.run_json.write_text(json.dumps(whole_run(machines=machines)))
    bounds = {name: [0.0, 0.0] for name in ("low_ns", "high_ns", "low_next_ns", "high_next_ns")}
    stretch = {"from_ns": ZERO, "to_ns": ZERO + S, "offset_ns": 5e6, "bar_ns": 1e4, "drift_ppm": 3.0}
    clocks = [
        {
            "machine": name,
            "source": source,
            "way": ["h0", name],
            "seen_there": 7,
            "seen_back": 7,
            "contradictions": 0,
            "least_used": True,
            "error_median_ns": 1e4,
            "error_max_ns": 2e4,
            "stretches": [stretch | {"drift_error_ppm": 1.0}, stretch | {"drift_error_ppm": 1.0}],
            "clock": {"t_ns": [ZERO - S, ZERO, ZERO + S], **bounds},
        }
        for name, source in (("h0", "control"), ("h1", "packets"))
    ]
    run.summary_json.write_text('{"verdict": "passed"}')

    def read(content: Json) -> None:
        run.clocks.write_text(json.dumps(content))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            record, known = read_on_reference(run)
            read_metadata(record, known)
            shown = read_record(run)
            clocks_table(shown)
            for each in (summary, problems, lambda found: notes(found, ZERO)):
                each(shown.machines)

    assert broken({"schema": 1, "machines": clocks}, WRONG, read) == []


NUMBERS = {True: (math.nan, math.inf, -1e300), False: (-1, 1 << 62)}
"""By whether a column has fractions."""


def changed_tables(table: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """Yield changed tables: another one, an empty one, and each column changed in one way."""
    yield "all", pa.table({"other": [1, 2, 3]})
    yield "none", table.slice(0, 0)
    for place, field in enumerate(table.schema):
        ways = [None, pa.nulls(table.num_rows, field.type), pa.array(["\x1b[31m<script>"] * table.num_rows)]
        if pa.types.is_floating(field.type) or pa.types.is_integer(field.type):
            for number in NUMBERS[pa.types.is_floating(field.type)]:
                with suppress(pa.ArrowInvalid):  # too large for this column
                    ways.append(pa.array([number] * table.num_rows).cast(field.type))
        column = ways[place % len(ways)]
        gone = table.drop_columns([field.name])
        what = "gone" if column is None else str(column[0])
        yield (
            f"{field.name} is {what}",
            gone if column is None else table.set_column(place, field.name, column),
        )


@pytest.mark.parametrize("name", list(TABLES))
def test_a_changed_table_is_shown_or_reported_as_missing(tmp_path: Path, name: str) -> None:
    run = write_run(tmp_path, SHORT)
    path = run.table(name)
    whole = pq.read_table(path)
    if path.is_dir():
        shutil.rmtree(path)
    problems = []
    for what, table in changed_tables(whole):
        pq.write_table(table, path)
        try:
            record = read_record(run)
            render(record, run)
            lines([ComparedRun(letter, "red", run, record) for letter in "AB"])
        except (InputError, AnalysisError):
            continue
        except Exception as error:  # noqa: BLE001 - that it is none of ours is what is tried
            problems.append(f"{what}: {type(error).__name__}: {error}")
    assert "\n".join(problems) == ""
