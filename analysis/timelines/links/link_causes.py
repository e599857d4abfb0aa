"""Explains why a link did not behave as configured, if the run's own data show it."""

import itertools
from collections.abc import Iterator
from typing import Any

from analysis.timelines.machine_health import CPU_LIMIT, SAMPLE_NS, STALL_NS, busy_samples
from analysis.timelines.run_metadata import RunMetadata
from experiments.records.observations import LinkCounts
from experiments.records.run_record import RunRecord

LATE_US = 1_000.0
"""A relay with a higher lateness at p99 is reported as a cause."""

Row = dict[str, Any]


def with_causes(rows: list[Row], record: RunRecord, metadata: RunMetadata) -> list[Row]:
    """Return rows of `schemas.FIDELITY`, the violated ones with a cause if one is known."""
    return [
        row if row["valid"] else row | {"cause": "; ".join(_causes(row, record, metadata)) or None}
        for row in rows
    ]


def _causes(row: Row, record: RunRecord, metadata: RunMetadata) -> Iterator[str]:
    yield from _machine_causes(row, record, metadata)
    yield from _capture_causes(row, record)
    for counts in record.counters:
        if (counts.link, counts.direction) == (row["link"], row["direction"]):
            yield from _counter_causes(counts)
    if row["strays"]:
        yield f"{row['strays']} segments of offloaded frames were split at unknown boundaries"
    if row["lost_queue"]:
        yield f"its queue was full, as configured, and dropped {row['lost_queue']} packets"


def _machine_causes(row: Row, record: RunRecord, metadata: RunMetadata) -> Iterator[str]:
    for machine, samples in busy_samples(record, metadata).items():
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
            yield f"{machine} stalled for {max(gaps) / 1e9:.1f} s"


def _within(row: Row, metadata: RunMetadata, t_ns: int) -> bool:
    seconds = metadata.seconds(t_ns)
    since, until = row["from_s"], row["to_s"]
    return (since is None or seconds >= since) and (until is None or seconds <= until)


def _capture_causes(row: Row, record: RunRecord) -> Iterator[str]:
    unseen = record.wires
    for capture in record.captures:
        if capture.link == row["link"] and capture.kernel_drops and capture.name not in unseen:
            yield f"the capture {capture.name} lost {capture.kernel_drops} packets, independently of the link"


def _counter_causes(counts: LinkCounts) -> Iterator[str]:
    if counts.dropped_kernel:
        yield f"the link emulator's receive ring was full: {counts.dropped_kernel} frames did not reach it"
    if counts.dropped_send:
        yield f"the interface behind it refused {counts.dropped_send} frames"
    if (late_us := counts.lateness_p99_us or 0.0) > LATE_US:
        yield f"the link emulator was late by its own clock (p99 {late_us / 1e3:.1f} ms)"
