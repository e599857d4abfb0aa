"""Explains why a link did not behave as configured, where the run's own data tell."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from analysis.capture.clocks.machine_clocks import wires_of
from analysis.timelines.machine_health import CPU_LIMIT, SAMPLE_NS, STALL_NS, busy_samples
from analysis.timelines.periods import Json
from analysis.timelines.run_metadata import RunMetadata

LATE_US = 1_000.0
"""A relay that is later than this at p99 says so itself."""

Row = dict[str, Any]


def with_causes(rows: list[Row], run: Json, metadata: RunMetadata) -> list[Row]:
    """Rows of `schemas.FIDELITY`, the violated ones with a cause if one is known."""
    return [
        row if row["valid"] else row | {"cause": "; ".join(_causes(row, run, metadata)) or None}
        for row in rows
    ]


def _causes(row: Row, run: Json, metadata: RunMetadata) -> Iterator[str]:
    yield from _of_machines(row, run, metadata)
    yield from _of_captures(row, run)
    for counter in run.get("counters") or ():
        if (counter["link"], counter["direction"]) == (row["link"], row["direction"]):
            yield from _of_counter(counter)
    if row["strays"]:
        yield f"{row['strays']} segments of offloaded frames were cut where nobody can tell"
    if row["lost_queue"]:
        yield f"its queue was full, as configured, and dropped {row['lost_queue']}"


def _of_machines(row: Row, run: Json, metadata: RunMetadata) -> Iterator[str]:
    for machine, samples in busy_samples(run, metadata).items():
        mine = [
            (t_ns, busy)
            for t_ns, busy in samples
            if any(_within(row, metadata, each_ns) for each_ns in (t_ns - SAMPLE_NS, t_ns))
        ]
        full = sum(busy >= CPU_LIMIT for _, busy in mine)
        if full:
            yield f"the processors of {machine} were over {CPU_LIMIT:.0%} busy for {full} s of it"
        gaps = [after[0] - before[0] - SAMPLE_NS for before, after in itertools.pairwise(mine)]
        if max(gaps, default=0) > STALL_NS:
            yield f"{machine} stood still for {max(gaps) / 1e9:.1f} s"


def _within(row: Row, metadata: RunMetadata, t_ns: int) -> bool:
    seconds = metadata.seconds(t_ns)
    since, until = row["from_s"], row["to_s"]
    return (since is None or seconds >= since) and (until is None or seconds <= until)


def _of_captures(row: Row, run: Json) -> Iterator[str]:
    unseen = wires_of(run)
    for capture in run.get("captures") or ():
        name = Path(capture["file"]).name
        if capture.get("link") == row["link"] and capture.get("kernel_drops") and name not in unseen:
            yield f"the capture {name} lost {capture['kernel_drops']} packets, whatever the link did"


def _of_counter(counter: Json) -> Iterator[str]:
    if counter.get("dropped_kernel"):
        yield f"the link emulator's receive ring was full: {counter['dropped_kernel']} frames never got to it"
    if counter.get("dropped_send"):
        yield f"the interface behind it refused {counter['dropped_send']} frames"
    if (counter.get("lateness_p99_us") or 0.0) > LATE_US:
        yield f"the link emulator was late by its own clock (p99 {counter['lateness_p99_us'] / 1e3:.1f} ms)"
