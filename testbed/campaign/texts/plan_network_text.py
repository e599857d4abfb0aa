"""The network of a plan as rows of text: regions, streams, hosts, links, routes, TCP."""

import contextlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import permutations

from experiments.backend_names import LOCAL
from experiments.planned.change_text import differing_text
from experiments.planned.changes import LinkDirectionName
from experiments.planned.plan import TRAFFIC_ROLE, LinkPlan, Plan
from experiments.planned.plan_routes import hops, next_links
from testbed import congestion_control
from testbed.run_selection import RunSelection
from topologies.link_parameters import LinkParameters
from topologies.link_trace import LinkTrace
from topologies.quantities import DURATION
from topologies.routing import OSPF

Row = tuple[str, ...]


def region_rows(plan: Plan) -> Iterator[Row]:
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for process in plan.processes:
        counts[process.region][process.role] += 1
    for region in plan.regions:
        roles = ", ".join(f"{role} {count}" for role, count in counts[region.name].items())
        yield region.name, _owned(plan, region.name), region.subnet, roles or "no processes"


def _owned(plan: Plan, region: str) -> str:
    """Return the streams that a region owns, by number."""
    numbers = [stream.number for stream in plan.streams_of(region)]
    if not numbers:
        return "no stream"
    if len(numbers) > 1 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"streams {numbers[0]} to {numbers[-1]}"
    return f"stream{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


def stream_rows(plan: Plan) -> Iterator[Row]:
    """Yield the streams, if any is published from other regions than its own."""
    if all(stream.publishers == (stream.region,) for stream in plan.streams):
        return
    for stream in plan.streams:
        yield (
            str(stream.number),
            stream.name,
            stream.region,
            f"published on by {', '.join(stream.publishers)}",
        )


def host_rows(plan: Plan) -> Iterator[Row]:
    processes = {process.host: process for process in plan.processes}
    for host in plan.hosts:
        process = processes.get(host.name)
        other = "other people's traffic" if host.role == TRAFFIC_ROLE else "routes between LAN and WAN"
        yield host.name, host.address, f"process {process.name}" if process else other


def wan_rows(plan: Plan) -> Iterator[Row]:
    used = {link.name for row in next_links(plan).values() for link in row.values()}
    unused = "no route uses it" + ("" if plan.routing is None else " until another link fails")
    for link in plan.links:
        if link.kind == "wan":
            yield (
                link.name,
                _both_ways(link) + ("" if link.name in used else f"; {unused}"),
                link.subnet,
                f"{link.a} {link.a_address}",
                f"{link.b} {link.b_address}",
            )


def routing_rows(plan: Plan) -> Iterator[Row]:
    """Yield the routing protocol of the gateways, if routes are not fixed."""
    if (routing := plan.routing) is not None:
        dead = "dead" if routing.protocol == OSPF else "hold time"
        bfd = f"{routing.bfd_multiplier} x {routing.bfd_interval_ms}ms" if routing.bfd_interval_ms else "none"
        yield routing.protocol, f"hello {routing.hello_s}s, {dead} {routing.dead_s}s, BFD {bfd}"
        joined = {hop for link in plan.links if link.kind == "wan" for hop in permutations((link.a, link.b))}
        for (source, target), route in hops(plan).items():
            if len(route) > 1 and (source, target) in joined:
                detour = ", ".join(end for _, end in route[:-1])
                yield f"{source} to {target}", f"by {detour}, although a link joins them"


def _both_ways(link: LinkPlan) -> str:
    """Return the parameters of a link, and those of its way back if they differ."""
    forward, backward = (differing_text(each, LinkParameters()) for each in (link.forward, link.backward))
    return forward if forward == backward else f"{forward}; back {backward}"


def trace_rows(plan: Plan) -> Iterator[Row]:
    """Yield the traces that link directions follow from time 0 on."""
    for link in plan.links:
        for direction in LinkDirectionName:
            trace = link.trace(direction) or LinkTrace()
            named = (("rate", trace.rate, 1e6, "Mbit/s"), ("delay", trace.delay, 1e3, "ms"))
            for what, steps, unit, unit_name in named:
                if steps is not None:
                    least, mean, most = (
                        f"{value / unit:.4g}" for value in (min(steps.values), steps.mean, max(steps.values))
                    )
                    yield (
                        f"{link.name} {direction}",
                        what,
                        f"{mean} {unit_name} on average, {least} to {most}",
                        f"{steps.file}, {DURATION.format(steps.period_us)}",
                    )


def lan_rows(plan: Plan, *, full: bool) -> Iterator[Row]:
    """Yield each link, or without --full the number of equal links of each region."""
    lan = [link for link in plan.links if link.kind == "lan"]
    if full:
        yield from ((link.name, _both_ways(link)) for link in lan)
        return
    equal = Counter((link.b, _both_ways(link)) for link in lan)
    for (region, text), count in equal.items():
        yield region, f"{count} hosts" if count > 1 else "1 host", text


def tcp_rows(plan: Plan, chosen: RunSelection) -> Iterator[Row]:
    """Yield the congestion control: the experiment's, or the default of the machine that runs it."""
    if plan.congestion_control is not None:
        yield ("congestion control", plan.congestion_control)
    elif chosen.backend == LOCAL:
        with contextlib.suppress(OSError):
            yield ("congestion control", f"{congestion_control.default()}, the default of this machine")
