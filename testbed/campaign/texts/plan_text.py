"""A plan as lines of text, in the order in which a reader asks: what, where, when, and with which commands.

Quantities are written as in the files, so that they can be copied. Long sections are shortened unless
`--full` is given.
"""

import contextlib
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import permutations
from pathlib import Path

import click

from experiments.backend_names import LOCAL, SIMULATOR
from experiments.campaigns.sweep import VARIANT, value_text, values_text
from experiments.child_python import python_command
from experiments.contract import differences
from experiments.declared import Trait, declared_with
from experiments.planned.change_text import change_values
from experiments.planned.changes import (
    LinkChange,
    LinkDirectionName,
    LinkState,
    ProcessChange,
    Trigger,
)
from experiments.planned.plan import (
    TRAFFIC_ROLE,
    ChurnPlan,
    LinkPlan,
    Plan,
    TrafficPlan,
)
from experiments.planned.plan_routes import hops, next_links
from experiments.records.rundir import RunDirectory
from testbed import congestion_control
from testbed.campaign.backend_selection import open_backend
from testbed.capturing.capture_commands import TcpdumpPoint, tcpdump_command
from testbed.capturing.capture_size import capture_bytes_per_s, disk_needed_bytes
from testbed.links.abilities import with_links_that_can
from testbed.links.relay.ring_sizes import RINGS_BYTES_MAX, memory_bytes
from testbed.network.commands import inside_lines
from testbed.network.network_layout import make_layout
from testbed.planning import make_plan
from testbed.programs import LAUNCHER, lacking_of_experiment, launches_of
from testbed.run_selection import RunSelection
from testbed.sandbox.commands import sandbox_command
from topologies.jitter import NAMES, UNIFORM, named_quantiles
from topologies.link_parameters import LinkParameters
from topologies.link_trace import LinkTrace
from topologies.loader import load_topology
from topologies.quantities import DURATION, FRACTION, PACKETS, RATE, SIZE
from topologies.routing import OSPF

PYTHON = "python"  # its path is no part of the plan
ROWS_MAX = 40  # of a section, without --full

Row = tuple[str, ...]


def plan_of(chosen: RunSelection) -> Plan:
    """Return the plan of the first repetition of the experiment, as its backend can execute it.

    Raises InputError.
    """
    experiment = chosen.file.experiment
    topology = load_topology(experiment.topology)
    with chosen.file.placing_errors():
        plan = make_plan(experiment, topology, seed=chosen.seed, links_kind=chosen.links)
        if chosen.backend != SIMULATOR:
            return with_links_that_can(plan)  # real links, here or on machines
        with open_backend(SIMULATOR, say=click.echo) as backend:
            return backend.adapted(plan)


def show_plan(chosen: RunSelection, *, full: bool) -> None:
    """Print the plan."""
    for line in plan_lines(plan_of(chosen), chosen, full=full):
        click.echo(line)


def plan_lines(plan: Plan, chosen: RunSelection, *, full: bool) -> Iterator[str]:
    """Yield the lines of the plan."""
    experiment = chosen.file.experiment
    machines = list(_machine_rows(plan, chosen))  # first, because it fails if they are not suitable
    left_out = list(_left_out_rows(chosen))  # fails, too, if an image is wrong
    yield from _heading(plan, chosen)
    sections: list[tuple[str, Iterable[Row]]] = [
        ("Regions", _region_rows(plan)),
        ("Streams", _stream_rows(plan)),
        *_content_sections(plan),
        ("Hosts", _host_rows(plan)),
        ("Machines", machines),
        ("WAN links", _wan_rows(plan)),
        ("Routing", _routing_rows(plan)),
        ("TCP", _tcp_rows(plan, chosen)),
        ("Traces", _trace_rows(plan)),
        ("LAN links", _lan_rows(plan, full=full)),
        ("Timeline", _timeline_rows(plan, full=full)),
        ("Runs", _run_rows(chosen)),
        ("Left out", left_out),
        ("Expected", [(expectation.text,) for expectation in experiment.expect]),
        ("Expected of all runs together", _expected_of_sweep(chosen)),
        ("Commands", _command_rows(plan, full=full)),
        ("Disk", _disk_rows(plan)),
        ("Memory", _memory_rows(plan)),
    ]
    for title, rows in sections:
        yield from _section(title, list(rows), full=full)


def link_parameters_text(parameters: LinkParameters) -> str:
    """Return `15ms, 10gbit`, followed by the parameters that differ from the defaults."""
    parts = ["traced delay" if parameters.delay_traced else DURATION.format(parameters.delay_us)]
    if parameters.jitter_us:
        order = ", may reorder" if parameters.reorder else ""
        correlation = parameters.jitter_correlation
        correlated = f", correlated by {FRACTION.format(correlation)}" if correlation else ""
        named = (name for name in NAMES if named_quantiles(name) == parameters.jitter_quantiles)
        distribution = next(named, "measured")
        shape = "" if distribution == UNIFORM else f", {distribution}"
        parts[0] += f" ± {DURATION.format(parameters.jitter_us)}{shape}{correlated}{order}"
    rate = RATE.format(parameters.rate_bits_per_s) if parameters.rate_bits_per_s else "no rate limit"
    parts.append("traced rate" if parameters.rate_traced else rate)
    if parameters.loss:
        burst = f" in bursts of {parameters.loss_burst_packets}" if parameters.loss_burst_packets else ""
        parts.append(f"loss {FRACTION.format(parameters.loss)}{burst}")
    for name in ("duplicate", "corrupt"):
        if share := getattr(parameters, name):
            parts.append(f"{name} {FRACTION.format(share)}")
    if parameters.queue_packets:
        parts.append(f"queue {PACKETS.format(parameters.queue_packets)}")
    if parameters.mtu_bytes != LinkParameters().mtu_bytes:
        icmp = " without ICMP" if parameters.icmp_dropped else ""
        parts.append(f"MTU {SIZE.format(parameters.mtu_bytes)}{icmp}")
    return ", ".join(parts)


def _tcp_rows(plan: Plan, chosen: RunSelection) -> Iterator[Row]:
    """Yield the congestion control: the experiment's, or the default of the machine that runs it."""
    if plan.congestion_control is not None:
        yield ("congestion control", plan.congestion_control)
    elif chosen.backend == LOCAL:
        with contextlib.suppress(OSError):
            yield ("congestion control", f"{congestion_control.default()}, the default of this machine")


def _heading(plan: Plan, chosen: RunSelection) -> Iterator[str]:
    experiment = chosen.file.experiment
    yield click.style(plan.experiment, bold=True) + (
        f"  {experiment.description}" if experiment.description else ""
    )
    if experiment.paper:
        figures = ", ".join(map(str, experiment.paper.figures))
        section = f", section {experiment.paper.section}" if experiment.paper.section else ""
        yield f"  after {experiment.paper.document}{section}" + (f", figures {figures}" if figures else "")
    topology = experiment.topology if isinstance(experiment.topology, str) else "a topology of its own"
    size = f"{len(plan.processes)} processes in {len(plan.regions)} regions"
    yield (
        f"  {plan.system} on {topology}: {size}, "
        f"{DURATION.format(plan.duration_us)}, seed {plan.seed}, links {plan.links_kind}"
    )
    if chosen.is_sweep:
        sweep = "".join(
            f", {path} over [{', '.join(map(value_text, values))}]"
            for path, values in experiment.axes.items()
        )
        yield f"  {chosen.repeat} times each{sweep}"


def _left_out_rows(chosen: RunSelection) -> Iterator[Row]:
    """Yield the variants that this machine cannot run. Raises InputError if a swept image does not fit."""
    for path, values in chosen.file.experiment.axes.items():
        for value in values if path in {VARIANT, "system"} or path.startswith("images") else ():
            experiment = chosen.file.point({path: value})
            if path == VARIANT and (problem := lacking_of_experiment(experiment)):
                yield str(value), problem
            elif experiment.images or path == "system":
                with chosen.file.placing_errors():
                    make_plan(experiment, load_topology(experiment.topology), seed=None, links_kind="auto")


def _run_rows(chosen: RunSelection) -> Iterator[Row]:
    """Yield a row for each run of a sweep, with its seed and its values."""
    if chosen.is_sweep:
        from testbed.sweeps import runs_of

        yield from ((run.name, f"seed {run.seed}", values_text(run.values)) for run in runs_of(chosen))


def _expected_of_sweep(chosen: RunSelection) -> list[Row]:
    expected = chosen.file.experiment.expect_sweep if chosen.is_sweep else ()
    return [(expectation.text,) for expectation in expected]


def _section(title: str, rows: Sequence[Row], *, full: bool) -> Iterator[str]:
    if not rows:
        return
    yield ""
    yield click.style(title, bold=True)
    shown = rows if full else rows[:ROWS_MAX]
    columns = max(map(len, shown))
    widths = [max((len(row[i]) for row in shown if i < len(row) - 1), default=0) for i in range(columns)]
    for row in shown:
        yield "  " + "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)).rstrip()
    if len(shown) < len(rows):
        yield f"  and {len(rows) - len(shown)} more (--full shows them)"


def _region_rows(plan: Plan) -> Iterator[Row]:
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for process in plan.processes:
        counts[process.region][process.role] += 1
    for region in plan.regions:
        roles = ", ".join(f"{role} {count}" for role, count in counts[region.name].items())
        yield region.name, owned(plan, region.name), region.subnet, roles or "no processes"


def owned(plan: Plan, region: str) -> str:
    """Return the streams that a region owns, by number."""
    numbers = [stream.number for stream in plan.streams_of(region)]
    if not numbers:
        return "no stream"
    if len(numbers) > 1 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"streams {numbers[0]} to {numbers[-1]}"
    return f"stream{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


def _stream_rows(plan: Plan) -> Iterator[Row]:
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


def _content_sections(plan: Plan) -> Iterator[tuple[str, Iterable[Row]]]:
    """Yield the sections of a content-based workload: attributes, events and subscriptions."""
    if plan.workload.get("kind") == "content":
        from experiments.workloads import content_text  # it needs NumPy, which most plans do not

        yield "Attributes", content_text.attribute_rows(plan)
        yield "Events", content_text.event_rows(plan)
        yield "Subscriptions", content_text.subscription_rows(plan)


def _host_rows(plan: Plan) -> Iterator[Row]:
    seeds = {process.host: process for process in plan.processes}
    for host in plan.hosts:
        process = seeds.get(host.name)
        other = "other people's traffic" if host.role == TRAFFIC_ROLE else "routes between LAN and WAN"
        yield host.name, host.address, f"process {process.name}" if process else other


def _wan_rows(plan: Plan) -> Iterator[Row]:
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


def _routing_rows(plan: Plan) -> Iterator[Row]:
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
    if link.forward == link.backward:
        return link_parameters_text(link.forward)
    return f"{link_parameters_text(link.forward)}; back {link_parameters_text(link.backward)}"


def _trace_rows(plan: Plan) -> Iterator[Row]:
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


def _lan_rows(plan: Plan, *, full: bool) -> Iterator[Row]:
    """Yield each link, or without --full the number of equal links of each region."""
    lan = [link for link in plan.links if link.kind == "lan"]
    if full:
        yield from ((link.name, _both_ways(link)) for link in lan)
        return
    equal = Counter((link.b, _both_ways(link)) for link in lan)
    for (region, text), count in equal.items():
        yield region, f"{count} hosts" if count > 1 else "1 host", text


def _timeline_rows(plan: Plan, *, full: bool) -> Iterator[Row]:
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
    """Return `12 member: uniform, until 20 s; 3 of them come back`."""
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
            up = change.state is LinkState.UP
            what = f"up: {link_parameters_text(change.parameters)}" if up else str(change.state)
            what += _trigger_text(change.when)
            ways[change.place, what].append(change.direction)
    for (link, what), directions in ways.items():
        only = f" ({directions[0]} only)" if len(directions) == 1 else ""
        parts.append(f"{link} {what}{only}")
    return "; ".join(parts)


def _machine_rows(plan: Plan, chosen: RunSelection) -> Iterator[Row]:
    """Yield the hosts of each machine of an inventory, if the run uses one."""
    if chosen.backend in {LOCAL, SIMULATOR}:
        return
    from testbed.machines.inventory import load_inventory
    from testbed.machines.placement import place

    placement = place(plan, load_inventory(Path(chosen.backend)))
    for machine in placement.machines:
        yield machine.name, machine.control, " ".join(placement.hosts(machine))


def _command_rows(plan: Plan, *, full: bool) -> Iterator[Row]:
    inside = python_command("testbed.runner", "RUN", python=PYTHON)
    yield "sandbox", shlex.join(sandbox_command(inside, user_namespace=True))
    layout = make_layout(plan)
    lines = [(host.name, line) for host in plan.hosts for line in inside_lines(layout, host.name)]
    if full:
        yield from (("network", f"in {host}: ip {line}") for host, line in lines)
    else:
        yield "network", f"ip -batch: {len(lines)} lines in {len(plan.hosts)} hosts (--full shows them)"
    captures = [_capture_command(plan, number) for number in range(len(plan.captures))]
    yield from (("capture", text) for text in (captures if full else captures[:1]))
    if len(captures) > 1 and not full:
        yield "", f"and {len(captures) - 1} more of this kind"
    yield (
        "nodes",
        f"{shlex.join(python_command(LAUNCHER, python=PYTHON))} (forks {len(plan.processes)} processes)",
    )
    yield from _program_rows(plan, full=full)


def _program_rows(plan: Plan, *, full: bool) -> Iterator[Row]:
    """Yield the programs that processes start: without --full only the first process of each role."""
    shown: set[str] = set()
    for name, launch in launches_of(plan, RunDirectory(Path("RUN"))).items():
        role = next(each.role for each in plan.processes if each.name == name)
        if full or role not in shown:
            shown.add(role)
            yield "program", f"{name}: {shlex.join(launch['program']['run'])}"
            if image := launch["program"]["image"]:
                yield "", f"in the image {image['source']}, {image['digest']} {image['version']}".rstrip()
    if (more := 0 if full else len(plan.processes) - len(shown)) and shown:
        yield "", f"and {more} more of these kinds"


def _capture_command(plan: Plan, number: int) -> str:
    capture = plan.captures[number]
    point = TcpdumpPoint(capture, netns=f"/proc/PID_OF_{capture.host}/ns/net", interface=capture.interface)
    if capture.link:
        point = TcpdumpPoint(capture, netns=None, interface=f"SIDE_{capture.side}_OF_{capture.link}")
    path = Path("captures") / capture.file
    return shlex.join(tcpdump_command(point, path, snaplen_bytes=plan.snaplen_bytes, root=False))


def _disk_rows(plan: Plan) -> Iterator[Row]:
    if not plan.captures:
        yield ("nothing is captured",)
        return
    yield (
        f"about {disk_needed_bytes(plan) / 1e9:.1f} GB for {len(plan.captures)} captures, "
        f"{capture_bytes_per_s(plan) / 1e6:.0f} MB/s",
    )


def _memory_rows(plan: Plan) -> Iterator[Row]:
    """Yield the memory of the relay's receive rings, at both ends of every link."""
    if plan.links_kind not in ("auto", "relay"):
        return
    received = [each.towards(direction) for each in plan.links for direction in LinkDirectionName]
    yield (
        f"{memory_bytes(received) / (1 << 20):.0f} MiB at most for the relay's receive rings, "
        f"within {RINGS_BYTES_MAX >> 20} MiB",
    )
