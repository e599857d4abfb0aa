"""The timeline of a plan as rows of text: load, faults with their changes, churn and traffic."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from experiments.contract import differences
from experiments.declared import Trait, declared_with
from experiments.planned.change_text import change_values
from experiments.planned.changes import LinkChange, ProcessChange, Trigger
from experiments.planned.plan import ChurnPlan, Plan, TrafficPlan
from testbed.campaign.texts.plan_network_text import Row
from topologies.quantities import DURATION, RATE, SIZE


def timeline_rows(plan: Plan, *, full: bool) -> Iterator[Row]:
    """Yield the start and end of the drivers, each fault with its changes, and churn as numbers."""
    churn = set() if full else {each.name for each in plan.churn}
    changes: defaultdict[tuple[int, str], list[LinkChange | ProcessChange]] = defaultdict(list)
    for change in plan.changes:
        if change.fault not in churn:
            changes[change.at_us, change.fault].append(change)
    rows = [(0, 0, "drivers start", _load_text(plan))]
    if less := _contract_text(plan):
        rows.append((0, 1, "", less))
    rows += [(each.at_us, 2, each.name, _churn_text(each)) for each in plan.churn]
    for number, fault in enumerate(plan.faults):
        if not any(at_us == fault.at_us and name == fault.name for at_us, name in changes):
            rows.append(
                (fault.at_us, number + 1, fault.name, f"{fault.kind} {fault.target}: changes nothing")
            )
    for number, ((at_us, name), group) in enumerate(changes.items()):
        rows.append((at_us, number + 1, name, _changes_text(group, plan)))
    rows += [(each.at_us, 3, each.name, _traffic_text(each)) for each in plan.traffic]
    drain = f"then at most {DURATION.format(plan.drain_us)} until every client has everything"
    rows.append((plan.duration_us, len(rows), "drivers stop", drain))
    for at_us, _, name, text in sorted(rows):
        yield f"{at_us / 1e6:>8.3f} s", name, text


def _churn_text(churn: ChurnPlan) -> str:
    """Return `12 member: uniform, until 20 s; 3 times one comes back`."""
    back = f"; {churn.returns} times one comes back" if churn.returns else ""
    return f"{churn.target}, until {churn.until_us / 1e6:g} s{back}"


def _traffic_text(traffic: TrafficPlan) -> str:
    """Return `traffic r2-traffic to r3-traffic: 2 tcp flows, 50mbit, until 30 s, in 4 bursts`."""
    rate = RATE.format(traffic.rate_bits_per_s) if traffic.rate_bits_per_s else "as fast as they can"
    flows = f"{traffic.flows} {traffic.protocol} flow{'s' if traffic.flows > 1 else ''}"
    bursts = f", in {len(traffic.bursts)} bursts" if len(traffic.bursts) > 1 else ""
    until = f"until {traffic.until_us / 1e6:g} s"
    return f"traffic {traffic.host} to {traffic.target}: {flows}, {rate}, {until}{bursts}"


def _contract_text(plan: Plan) -> str:
    """Return which guarantees of the system the experiment relaxes, or "" if none."""
    system = plan.programs.file if plan.programs else plan.system  # programs may be given by a path
    promised = declared_with(system, plan.parameters, plan.workload.get("kind", "stream"))
    less = differences(promised.contract, plan.declared.contract)
    return f"contract loosened: {', '.join(less)}" if less else ""


def _load_text(plan: Plan) -> str:
    drivers = len(plan.having(Trait.PUBLISHER))
    size = SIZE.format(plan.workload["event_size_bytes"])
    rate = plan.workload["rate_per_s"]
    if rate is None:
        return f"{drivers} drivers, each as fast as its {size} events are acknowledged"
    return f"{drivers} drivers x {rate:,}/s of {size}: {drivers * rate:,} events/s"


def _trigger_text(when: Trigger | None) -> str:
    """Return `, when r1/proxy-0 has then sent FOLLOW 3 times`."""
    if when is None:
        return ""
    times = f" {when.times} times" if when.times > 1 else ""
    return f", when {when.process} has then sent {when.sends}{times}"


def _changes_text(changes: Sequence[LinkChange | ProcessChange], plan: Plan) -> str:
    """Return `r2-r3 blackhole`, with the direction if it is only one."""
    ways: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    parts = []
    for change in changes:
        if isinstance(change, ProcessChange):
            peers = f" {' '.join(change.peers)}" if change.peers else ""
            values = f" {text}" if (text := change_values(change, plan)) else ""
            parts.append(f"{change.process} {change.action}{peers}{values}{_trigger_text(change.when)}")
        else:
            values = f": {text}" if (text := change_values(change, plan)) else ""
            ways[change.place, f"{change.state}{values}{_trigger_text(change.when)}"].append(change.direction)
    for (link, what), directions in ways.items():
        only = f" ({directions[0]} only)" if len(directions) == 1 else ""
        parts.append(f"{link} {what}{only}")
    return "; ".join(parts)
