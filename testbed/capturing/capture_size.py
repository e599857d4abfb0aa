"""The disk space that a run's captures take: a rough upper estimate for a steady run.

The estimate counts how often each published byte passes a capture point. Every event is captured at its
publisher, at its proxy (in, and out to each region and client), at both sides of each WAN link that it
crosses, and at each client. Batches leave every few milliseconds and carry headers; every second segment is
acknowledged. Background traffic is captured at both sides of each link that it crosses.
"""

import math
from collections import Counter

from experiments.declared import Trait
from experiments.planned.plan import Plan, TrafficPlan
from experiments.planned.plan_routes import carriers, hops

BATCH_PERIOD_S = 0.005
BATCH_OVERHEAD_BYTES = 66 + 48 + 16 + 33
"""Ethernet, IP and TCP headers; our frame header; the pcap record header; half an acknowledgement's frame."""
CLOSED_LOOP_EVENTS_PER_S = 500_000
"""The assumed rate of a driver in closed loop: about what one publishes on a desktop."""
TRAFFIC_OVERHEAD = 1.1
"""Factor for headers, pcap records and acknowledgements on the way back."""
TRAFFIC_FRAME_BYTES = 1514
SETTLING_S = 10.0
"""Bring-up, drain and probes, counted at the full rate to be safe."""


def capture_bytes_per_s(plan: Plan) -> float:
    """Return by how many bytes all captures together grow each second while the drivers publish."""
    if not plan.captures:
        return 0.0
    publishers = Counter(process.region for process in plan.having(Trait.PUBLISHER))
    clients = len(plan.having(Trait.SUBSCRIBER))
    total = 0.0
    for region in plan.regions:
        drivers = publishers[region.name]
        copies = 2 + 2 * clients + 4 * (len(plan.regions) - 1)
        total += drivers * copies * stream_bytes_per_s(plan)
    return total + sum(_traffic_bytes_per_s(plan, each) for each in plan.traffic)


def _traffic_bytes_per_s(plan: Plan, traffic: TrafficPlan) -> float:
    """Return the bytes/s of a traffic entry in all captures of links, while it sends."""
    regions = {host.name: host.region for host in plan.hosts}
    carrying = carriers(plan)
    route = hops(plan).get((regions[traffic.host], regions[traffic.target]), ())
    shapes = [link.towards(direction) for link, direction in map(carrying.__getitem__, route)]
    rates = [float(shape.rate_bits_per_s or math.inf) for shape in shapes]
    if not route or not any(capture.link for capture in plan.captures):
        return 0.0
    bits_per_s = min([*rates, float(traffic.rate_bits_per_s or math.inf)])
    kept = 1.0 if plan.snaplen_bytes is None else min(1.0, plan.snaplen_bytes / TRAFFIC_FRAME_BYTES)
    return 2 * len(route) * bits_per_s / 8 * TRAFFIC_OVERHEAD * kept


def stream_bytes_per_s(plan: Plan) -> float:
    """Return the bytes/s of one driver's events in one capture, with headers and acknowledgements."""
    rate = float(plan.workload.get("rate_per_s") or CLOSED_LOOP_EVENTS_PER_S)
    batches = min(rate, 1 / BATCH_PERIOD_S)
    payload = rate * float(plan.workload["event_size_bytes"])
    if plan.snaplen_bytes is not None:
        payload = min(payload, batches * plan.snaplen_bytes)
    return payload + batches * BATCH_OVERHEAD_BYTES


def disk_needed_bytes(plan: Plan) -> int:
    """Return the bytes that the captures of the whole run take."""
    return int(capture_bytes_per_s(plan) * (plan.duration_us / 1e6 + SETTLING_S))
