"""How much disk the captures of a run will take. Pure; a rough upper figure for a steady run, not a
promise.

Counts how often each published byte passes a capture point: every event is captured where it is published,
at its proxy (in, and out to each region and client), at both sides of each WAN link that it crosses, and at
each client. Batches leave every few milliseconds and carry headers; every second segment is acknowledged.
"""

from collections import Counter

from experiments.parameters import Trait
from testbed.plan import Plan

BATCH_PERIOD_S = 0.005
BATCH_OVERHEAD_BYTES = 66 + 48 + 16 + 33
"""Ethernet, IP and TCP headers; our frame's head; the pcap record's head; half an acknowledgement's frame."""
CLOSED_LOOP_EVENTS_PER_S = 500_000
"""What a driver in closed loop is taken to publish: about what one does on a desktop."""
SETTLING_S = 10.0
"""Bring-up, drain and probes, at the full rate to be safe."""


def capture_bytes_per_s(plan: Plan) -> float:
    """Bytes that all captures together grow by each second while the drivers publish."""
    if not plan.captures:
        return 0.0
    publishers = Counter(process.region for process in plan.having(Trait.PUBLISHER))
    clients = len(plan.having(Trait.SUBSCRIBER))
    total = 0.0
    for region in plan.regions:
        drivers = publishers[region.name]
        copies = 2 + 2 * clients + 4 * (len(plan.regions) - 1)
        total += drivers * copies * stream_bytes_per_s(plan)
    return total


def stream_bytes_per_s(plan: Plan) -> float:
    """Bytes that one driver's events are in one capture, headers and acknowledgements included."""
    rate = float(plan.workload.get("rate_per_s") or CLOSED_LOOP_EVENTS_PER_S)
    batches = min(rate, 1 / BATCH_PERIOD_S)
    payload = rate * float(plan.workload["event_size_bytes"])
    if plan.snaplen_bytes is not None:
        payload = min(payload, batches * plan.snaplen_bytes)
    return payload + batches * BATCH_OVERHEAD_BYTES


def disk_needed_bytes(plan: Plan) -> int:
    """What the captures of the whole run take."""
    return int(capture_bytes_per_s(plan) * (plan.duration_us / 1e6 + SETTLING_S))
