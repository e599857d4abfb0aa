"""Renders the page: one self-contained HTML file, from templates/ and assets/.

Jinja's autoescape escapes every text; data for the plots is embedded as JSON in which `<`, `>`, `&` and `'`
are escaped, so no name can end the script element. A Content-Security-Policy in the page forbids every
network request.
"""

import json
import shlex
from collections.abc import Sequence
from typing import Any

from analysis.messages.searched import messages_of
from analysis.pages.charting.chart_model import Chart, highest
from analysis.pages.charting.chart_page import as_json, spans_json
from analysis.pages.page_environment import environment
from analysis.pages.report import clocks, tables
from analysis.pages.report.charts import charts
from analysis.pages.report.charts.topology_drawing import drawing, rates
from analysis.pages.report.convergence import convergence
from analysis.pages.report.fault_diagrams import FaultDiagram
from analysis.pages.report.fidelity_table import fidelity_table
from analysis.pages.report.paper import paper_section
from analysis.pages.report.recovery import note_in_words, recoveries
from analysis.pages.report.run_reader import AnalysedRun
from analysis.pages.report.sections import ReportSection
from analysis.pages.report.story import story
from analysis.pages.report.traffic import traffic_table
from analysis.timelines.schemas import BIN_NS
from experiments.records.run_record import Times
from experiments.records.rundir import RunDirectory, run_argument
from topologies.drawing.palette import colour_of

LINK_CHARTS_SHOWN = 30  # hundreds of plots are unusable: the busiest links are shown


def render(
    record: AnalysedRun,
    run: RunDirectory,
    diagrams: Sequence[FaultDiagram] = (),
    sections: Sequence[ReportSection] = (),
) -> str:
    """Return the page of a run. diagrams: files beside the page."""
    content = _content(record, packets_command(record, run))
    content |= {"sections": sections, "diagrams": diagrams}
    return environment().get_template("report.html.j2").render(content)


def packets_command(record: AnalysedRun, run: RunDirectory) -> str:
    """Return the command that shows packets of this run; "" if there are none, their messages are not known,
    or time 0 is not.
    """
    there = run.table("transfers").is_dir() and record.run.times.zero_ns is not None
    known = there and messages_of(record.plan) is not None
    return f"cutset packets {shlex.quote(run_argument(run.path))}" if known else ""


def _content(record: AnalysedRun, command: str) -> dict[str, Any]:
    """Return all values that the templates use."""
    throughput, latency = charts.throughput_chart(record), charts.latency_chart(record)
    links = {
        quantity: busiest(charts.link_charts(record, quantity))
        for quantity in ("bytes_per_s", "events_per_s")
    }
    return {
        "record": record,
        "command": command,
        "story": story(record),
        "paper": paper_section(record.experiment),
        "throughput": throughput,
        "latency": latency,
        "links": links["bytes_per_s"] or links["events_per_s"],
        "links_hidden": max(0, len(record.wan_links) - LINK_CHARTS_SHOWN),
        "recoveries": recoveries(record),
        "convergence": convergence(record),
        "drawing": drawing(record),
        "rates": rates(record),
        "tables": {
            "expectations": tables.expectations_table(record),
            "fidelity": fidelity_table(record),
            "clocks": clocks.clocks_table(record),
            "faults": tables.faults_table(record),
            "throttles": tables.throttles_table(record),
            "chains": tables.chains_table(record),
            "processes": tables.processes_table(record),
            "captures": tables.captures_table(record),
            "probes": tables.probes_table(record),
            "traffic": traffic_table(record),
        },
        "notes": tuple(map(note_in_words, record.notes)),
        "unproven": tables.unproven_periods(record),
        "facts": metadata(record),
        "experiment_json": json.dumps(record.experiment, indent=2, ensure_ascii=False),
        "topology_json": json.dumps(record.run.topology, indent=2, ensure_ascii=False),
        "plots": plots(record, [throughput, latency], links) | {"command": command},
    }


def busiest(found: tuple[Chart, ...]) -> tuple[Chart, ...]:
    """Return at most LINK_CHARTS_SHOWN charts, those with the highest peaks, in the plan's order."""
    peaks = {chart.key: highest(chart.series) for chart in found}
    kept = set(sorted(peaks, key=lambda key: -peaks[key])[:LINK_CHARTS_SHOWN])
    return tuple(chart for chart in found if chart.key in kept)


def plots(record: AnalysedRun, timelines: list[Chart], links: dict[str, tuple[Chart, ...]]) -> dict[str, Any]:
    """Return the data that assets/plots.js draws.

    Faults are included once, for all charts without spans of their own.
    """
    faults = charts.spans(record)

    def shown(chart: Chart) -> dict[str, Any]:
        return as_json(chart, spans=chart.spans != faults)

    return {
        "regions": [{"name": name, "colour": colour_of(i)} for i, name in enumerate(record.regions)],
        "spans": spans_json(faults),
        "bin_s": next((float(row["bin_s"]) for row in record.throughput), BIN_NS / 1e9),
        "end_s": max(chart.x.high or 0.0 for chart in timelines),
        "timelines": [shown(chart) for chart in timelines if chart.series],
        "links": {quantity: [shown(chart) for chart in found] for quantity, found in links.items()},
    }


def metadata(record: AnalysedRun) -> tuple[tuple[str, str], ...]:
    """Return the run's environment, as names and values."""
    run, machine, memory = record.run, record.run.machine, record.run.machine.memory_bytes
    entries = [
        ("Run", record.name),
        ("Seed", run.seed),
        ("Links", run.links),
        ("Outcome", f"{run.outcome or 'none'}, phase {run.phase}"),
        ("Length", _length(run.times)),
        ("Commit", short_commit(run.commit)),
        ("Machine", f"{machine.cpus} cores, {memory / 2**30:.0f} GiB" if memory else None),
        ("TCP", run.tcp.congestion_control),
        *(
            (name.capitalize(), str(version).removeprefix(f"{name} version "))
            for name, version in run.versions.items()
        ),
    ]
    return tuple((name, str(value)) for name, value in entries if value not in (None, ""))


def short_commit(commit: str | None) -> str | None:
    """Return the first digits of a commit, and whether the tree was changed."""
    if not commit:
        return None
    digits, _, changed = commit.partition("-")
    return digits[:12] + (f", {changed}" if changed else "")


def _length(times: Times) -> str | None:
    if times.started_ns is None or times.ended_ns is None:
        return None
    return f"{(times.ended_ns - times.started_ns) / 1e9:.1f} s, set-up and drain included"
