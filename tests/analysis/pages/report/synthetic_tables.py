"""The timelines' tables of a synthetic run, computed from its scenario instead of measured; noise is
seeded.
"""

from typing import Any

import numpy as np

from analysis.timelines import schemas
from experiments.planned.plan import Plan
from tests.analysis.pages.report.report_scenario import BIN_S, EVENT_BYTES_ON_WIRE, Scenario


def stalled(scenario: Scenario, origin: str, to: str, t: np.ndarray) -> np.ndarray:
    """Return the difference between a stream's arrivals at a region and its rate, events/s."""
    difference = np.zeros_like(t)
    if scenario.fault and {origin, to} == set(scenario.cut_ends):
        switched_s = scenario.switched_s[origin]
        difference[(t >= scenario.cut_s) & (t < switched_s)] = -scenario.rate_per_s
        difference[(t >= switched_s) & (t < scenario.level_s(origin))] = scenario.headroom_per_s
    return difference


def throughput(scenario: Scenario, plan: Plan, random: np.random.Generator) -> list[dict[str, Any]]:
    """Rows of the throughput table: regions, streams and, where captured, links."""
    fine = np.arange(0, scenario.duration_s, 0.01)
    starts = np.round(np.arange(0, scenario.duration_s, BIN_S), 6)

    def binned(values: np.ndarray) -> np.ndarray:
        noisy: np.ndarray = values.reshape(len(starts), -1).mean(axis=1) * random.normal(
            1, 0.002, len(starts)
        )
        return noisy

    rows = []

    def add(
        scope: str, name: str, direction: str | None, events_per_s: np.ndarray, bytes_per_event: float
    ) -> None:
        rows.extend(
            {
                "scope": scope,
                "name": name,
                "direction": direction,
                "start_s": float(start),
                "bin_s": BIN_S,
                "events_per_s": float(rate),
                "bytes_per_s": float(rate) * bytes_per_event,
            }
            for start, rate in zip(starts, binned(events_per_s), strict=True)
        )

    rate = np.full_like(fine, scenario.rate_per_s)
    for stream, region in enumerate(scenario.regions):
        arriving = sum(
            (rate + stalled(scenario, origin, region, fine) for origin in scenario.regions),
            np.zeros_like(fine),
        )
        add("region", region, None, arriving, 10)
        add("stream", f"s{stream}", None, rate, 10)
    for link in plan.links if scenario.captures else ():
        if link.kind == "wan":
            for direction, origin, to in (("forward", link.a, link.b), ("backward", link.b, link.a)):
                add("link", link.name, direction, carried(scenario, origin, to, fine), EVENT_BYTES_ON_WIRE)
    return rows


def carried(scenario: Scenario, origin: str, to: str, t: np.ndarray) -> np.ndarray:
    """Events/s over one direction of a WAN link: its own stream, and during the cut those sent round it."""
    own = np.full_like(t, scenario.rate_per_s)
    if not scenario.fault:
        return own
    a, b = scenario.cut_ends
    gone = (t >= scenario.cut_s) & (t < scenario.restore_s)
    if {origin, to} == {a, b}:
        own[gone] = 0
    for stream, over, end in ((a, scenario.regions[0], b), (b, scenario.regions[1], a)):
        if (origin, to) == (over, end):
            sent = gone & (t >= scenario.switched_s[stream])
            own[sent] += scenario.rate_per_s + stalled(scenario, stream, end, t)[sent]
    return own


def latency(scenario: Scenario, random: np.random.Generator) -> list[dict[str, Any]]:
    """Rows of the latency table: a backlog leaves in order at rate plus headroom."""
    rows = []
    for index, origin in enumerate(scenario.regions):
        base_ms = (47.0, 44.0, 43.0, 46.0)[index % 4]
        for start in np.round(np.arange(0, scenario.duration_s, BIN_S), 6):
            t = start + np.linspace(0, BIN_S, 21)
            ms = np.full_like(t, base_ms)
            if scenario.fault and origin in scenario.cut_ends:
                round_ms = np.where((t >= scenario.cut_s) & (t < scenario.restore_s), base_ms + 38.0, base_ms)
                leaves = scenario.switched_s[origin] + (t - scenario.cut_s) * scenario.rate_per_s / (
                    scenario.rate_per_s + scenario.headroom_per_s
                )
                waits_ms = np.where((t >= scenario.cut_s) & (t < scenario.restore_s), (leaves - t) * 1000, 0)
                ms = round_ms + np.maximum(0, waits_ms)
            ms = ms + random.gamma(2, 0.6, len(t))
            p50, p95, p99 = np.quantile(ms, (0.5, 0.95, 0.99)).tolist()
            rows.append(
                {
                    "origin": origin,
                    "start_s": float(start),
                    "bin_s": BIN_S,
                    "count": int(scenario.rate_per_s * BIN_S),
                    "mean_ms": p50,
                    "p50_ms": p50,
                    "p95_ms": p95,
                    "p99_ms": p99,
                    "max_ms": float(ms.max()),
                }
            )
    return rows


def recovered(scenario: Scenario, origin: str) -> dict[str, float]:
    """Return the figures of the recovery of a region's stream at the other end of the cut."""
    switch_s = scenario.switched_s[origin] - scenario.cut_s
    level_s = scenario.level_s(origin) - scenario.cut_s
    missed = round(switch_s * scenario.rate_per_s)
    return {
        "detect_s": 0.412,
        "resubscribe_s": switch_s - 0.08,
        **dict.fromkeys(("switch_s", "loss_derived_s", "connectivity_lost_s"), switch_s),
        "catch_up_s": scenario.caught_up_s(origin) - scenario.cut_s,
        **dict.fromkeys(("settled_s", "rate_derived_s"), level_s),
        **dict.fromkeys(("impaired", "backlog_events"), missed),
    }


def recovery(scenario: Scenario) -> list[dict[str, Any]]:
    """Rows of the recovery table: every (fault, stream, client)."""
    rows = []
    for stream, origin in enumerate(scenario.regions if scenario.fault else ()):
        for to in scenario.regions:
            row = dict.fromkeys(schemas.RECOVERY.names) | {
                "fault": "cut",
                "stream": stream,
                "affected": {origin, to} == set(scenario.cut_ends),
                "requested_s": scenario.cut_s,
                "applied_s": scenario.cut_s + 0.002,
                **dict.fromkeys(("lost", "duplicated", "out_of_order"), 0),
                "old_way": f"{origin} {to}",
            }
            if row["affected"]:
                row |= recovered(scenario, origin) | {"new_way": new_way(scenario, origin, to)}
            rows += [row | {"client": f"{to}-client-{i}"} for i in range(2)]
    return rows


def new_way(scenario: Scenario, origin: str, to: str) -> str:
    """Return the detour around the cut: via the first region for one end, via the second for the other."""
    return f"{origin} {scenario.regions[scenario.cut_ends.index(origin)]} {to}"


_IN_AN_INVALID_RUN = {
    "r2-r3": ("violated", "the kernel dropped 17 packets"),
    "r0-r1": ("unproven", "9 packets are too few to tell"),
}
_ZERO = ("configured_jitter_ms", "configured_loss", "loss", "loss_low", "lost_chance", "lost_size")
_ZERO += ("configured_duplicate", "configured_corrupt", "leaked", "strays")


def fidelity(scenario: Scenario, plan: Plan) -> list[dict[str, Any]]:
    """Rows of the fidelity table."""
    rows = []
    for link in plan.links:
        delay_ms, is_cut = link.forward.delay_us / 1000, link.name == "r2-r3"
        usual = ("proven", None)
        verdict, reason = usual if scenario.valid else _IN_AN_INVALID_RUN.get(link.name, usual)
        row = (
            dict.fromkeys(schemas.FIDELITY.names)
            | dict.fromkeys(_ZERO, 0)
            | {
                "link": link.name,
                "state": "up",
                "configured_delay_ms": delay_ms,
                "delay_min_ms": delay_ms + 0.01,
                "delay_p50_ms": delay_ms + 0.12,
                "delay_p99_ms": delay_ms + 0.84,
                "excess_p50_ms": 0.12,
                "excess_p99_ms": 0.84,
                "loss_high": 0.0001,
                "lost_queue": 160 * is_cut,
                "lost_cut": 41 * is_cut,
                "configured_rate_bits_per_s": link.forward.rate_bits_per_s,
                "rate_bits_per_s": 2_100_000.0,
                **dict.fromkeys(("packets", "matched"), 161_234),
                "verdict": verdict,
                "valid": scenario.valid or not is_cut,
                "reason": reason,
            }
        )
        if link.kind == "wan":
            rows += [row | {"direction": direction} for direction in ("forward", "backward")]
    return rows
