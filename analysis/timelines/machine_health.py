"""Effects of the machine on the run: dropped captures, saturated processors, stalls, late faults, wrong round
trips.
"""

import itertools
from ipaddress import ip_address
from statistics import median

from analysis.timelines.links.periods import Period
from analysis.timelines.run_metadata import Host, RunMetadata
from experiments.planned.changes import LinkChange
from experiments.records.observations import CaptureRecord, RoundTripProbe
from experiments.records.run_record import RunRecord

CPU_LIMIT = 0.95
CPU_SAMPLES = 2
"""Consecutive samples (one second each) above the limit that count as saturation: a single one is a spike."""
STALL_NS = 500_000_000
"""The runner takes a sample every second; one that is this much later means that the runner was not
scheduled.
"""
SAMPLE_NS = 1_000_000_000
LATE_NS = 100_000_000
"""A fault later than this changes every recovery time visibly."""
THROTTLE_PART, THROTTLE_S = 0.05, 0.02
"""Largest excess of a throttled process over its share of a processor: the kernel lets it run on until its
next tick, and takes that from the next period.
"""
ROUND_TRIP_US = 2_000.0
"""Largest excess of a probe's median round trip over the configured one (it includes both hosts' kernels)."""
EARLY_US = 100.0
ECHO_BITS = 8 * 46  # of a probe, with its headers (`testbed.network.probes`)


def machine_problems(record: RunRecord, metadata: RunMetadata) -> list[str]:
    """Return all reasons why the machine makes the run invalid, in a fixed order."""
    return [
        *_capture_drops(record),
        *_link_drops(record),
        *_saturation(record, metadata),
        *_stalls(record, metadata),
        *_late_changes(record),
        *_throttles(record),
        *_probes(record, metadata),
    ]


def capture_drops(record: RunRecord) -> int | None:
    """Return the packets that the kernel dropped from captures; None if some capture did not report it."""
    drops = [capture.kernel_drops for capture in _relevant_captures(record)]
    known = [count for count in drops if count is not None]
    return sum(known) if len(known) == len(drops) else None


def cpu_max(record: RunRecord, metadata: RunMetadata) -> float | None:
    """Return the busiest second of the run, as a part of all processors; None without samples."""
    return max(
        (busy for samples in busy_samples(record, metadata).values() for _, busy in samples), default=None
    )


def busy_samples(record: RunRecord, metadata: RunMetadata) -> dict[str, list[tuple[int, float]]]:
    """Return each machine's processor samples between time 0 and the drivers' end."""
    end_ns = metadata.stopped_ns or metadata.ended_ns
    found: dict[str, list[tuple[int, float]]] = {}
    for sample in record.cpu:
        if metadata.zero_ns <= sample.t_ns <= (end_ns or sample.t_ns):
            found.setdefault(sample.machine or "the machine", []).append((sample.t_ns, sample.busy))
    return found


def _relevant_captures(record: RunRecord) -> list[CaptureRecord]:
    """Return the captures that figures depend on. Captures for clocks only are excluded: others show their
    packets.
    """
    return [capture for capture in record.captures if capture.name not in record.wires]


def _capture_drops(record: RunRecord) -> list[str]:
    captures = _relevant_captures(record)
    dropped = [capture for capture in captures if capture.kernel_drops]
    unknown = [capture.file for capture in captures if capture.kernel_drops is None]
    problems = [f"{capture.file}: the kernel dropped {capture.kernel_drops} packets" for capture in dropped]
    if unknown:
        problems.append(f"captures ended without reporting their drops: {', '.join(unknown)}")
    return problems


def _link_drops(record: RunRecord) -> list[str]:
    return [
        f"link {counts.link} {counts.direction}: {counts.dropped_kernel} frames were lost on their way to it"
        for counts in record.counters
        if counts.dropped_kernel
    ]


def _saturation(record: RunRecord, metadata: RunMetadata) -> list[str]:
    problems = []
    for machine, samples in busy_samples(record, metadata).items():
        spells = itertools.groupby(busy >= CPU_LIMIT for _, busy in samples)
        longest = max((len([*spell]) for is_busy, spell in spells if is_busy), default=0)
        where = f" of {machine}" if len(record.machines) > 1 else ""
        if longest >= CPU_SAMPLES:
            problems.append(f"processors{where} were over {CPU_LIMIT:.0%} busy for {longest} s in a row")
    return problems


def _stalls(record: RunRecord, metadata: RunMetadata) -> list[str]:
    problems = []
    for machine, samples in busy_samples(record, metadata).items():
        gaps = [after - before for (before, _), (after, _) in itertools.pairwise(samples)]
        worst_ns = max(gaps, default=0) - SAMPLE_NS
        problems += [f"{machine} stalled for {worst_ns / 1e9:.1f} s"] if worst_ns > STALL_NS else []
    return problems


def _late_changes(record: RunRecord) -> list[str]:
    problems = []
    for change, applied in record.changes_applied:
        what = f"{change.place} {change.direction}" if isinstance(change, LinkChange) else change.process
        if applied.applied_ns is None:
            problems.append(f"fault {change.fault} could not be applied to {what}")
        elif (late_ns := applied.applied_ns - applied.requested_ns) > LATE_NS:
            problems.append(f"fault {change.fault} was applied to {what} {late_ns / 1e6:.0f} ms late")
    return problems


def _throttles(record: RunRecord) -> list[str]:
    return [
        f"{each.process} used {each.processor_s:.2f} s of a processor in {lasted_s:.2f} s, more than its"
        f" limit of {each.processor:.0%}"
        for each in record.throttles
        if each.processor is not None
        and (lasted_s := (each.to_ns - each.from_ns) / 1e9)
        and each.processor_s > each.processor * lasted_s * (1 + THROTTLE_PART) + THROTTLE_S
    ]


def _probes(record: RunRecord, metadata: RunMetadata) -> list[str]:
    """Compare round trips between linked regions with the link's configuration at that time.

    The time over a varying rate is not checked: it may include a pause.
    """
    problems = []
    for probe in record.probes:
        hop = (probe.origin, probe.target)
        if hop not in metadata.link_of or metadata.rerouted is not None:
            continue  # a probe between regions whose routes are not fixed does not tell its link
        index = 0 if probe.when == "before" else -1
        there, back = (_period(metadata, h, index) for h in (hop, hop[::-1]))
        name = f"round trip {hop[0]}-{hop[1]} {probe.when} the run"
        trips = probe.rtt_us
        if not (there.up and back.up):
            problems += [f"{name}: an answer came although the link was cut"] if trips else []
            continue
        jitter_us, lan_us = there.jitter_us + back.jitter_us, _lan_us(metadata, hop)
        least_us, most_us = (
            sum(ends) + lan_us
            for ends in zip(*(_delays_us(probe, way) for way in (there, back)), strict=True)
        )
        pauses = probe.when == "after" and bool(there.rate_trace or back.rate_trace)
        if not trips:
            lossless = not any((there.loss, back.loss, there.corrupt, back.corrupt))
            problems += [f"{name}: no answer"] if lossless and not pauses else []
        elif median(trips) > most_us + jitter_us + ROUND_TRIP_US and not pauses:
            problems.append(f"{name}: {median(trips) / 1e3:.2f} ms, configured {most_us / 1e3:.2f} ms")
        elif min(trips) < least_us - jitter_us - EARLY_US:
            problems.append(f"{name}: only {min(trips) / 1e3:.2f} ms, configured {least_us / 1e3:.2f} ms")
    return problems


def _period(metadata: RunMetadata, hop: tuple[str, str], index: int) -> Period:
    """Return the configuration for the packets of a probe, whose hosts a fault may select."""
    direction = metadata.link_of[hop]
    ends = {int(ip_address(host.address)) for region in hop if (host := _probed(metadata, region))}
    for selected in metadata.selected.get(direction, ()):
        if selected.port is None and selected.address in ends:
            return selected.periods[index]
    return metadata.periods[direction][index]


def _probed(metadata: RunMetadata, region: str) -> Host | None:
    """Return the host of a region that probes others: its first one with a LAN link."""
    hosts = (host for host in metadata.hosts.values() if host.region == region and any(host.lan_delay_us))
    return next(hosts, None)


def _delays_us(probe: RoundTripProbe, period: Period) -> tuple[int, int]:
    """Return the shortest delay that a direction may have at the time of a probe, and the longest with the
    probe's transmission.
    """
    sent_us = ECHO_BITS * 1_000_000 // period.rate_bits_per_s if period.rate_bits_per_s else 0
    if probe.when == "before" or period.delay_trace is None:
        return period.delay_us, period.delay_us + sent_us
    return min(period.delay_trace.values), max(period.delay_trace.values) + sent_us


def _lan_us(metadata: RunMetadata, hop: tuple[str, str]) -> int:
    """Return the delay of both LANs, both ways."""
    hosts = (_probed(metadata, region) for region in hop)
    return sum(sum(host.lan_delay_us) for host in hosts if host is not None)
