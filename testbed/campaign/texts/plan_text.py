"""A plan as lines of text, in the order in which a reader asks: what, where, when, and with which commands.

Quantities are written as in the files, so that they can be copied. Long sections are shortened unless
`--full` is given.
"""

from collections.abc import Iterable, Iterator, Sequence

import click

from experiments.backend_names import SIMULATOR
from experiments.campaigns.sweep import VARIANT, value_text, values_text
from experiments.planned.plan import Plan
from testbed.campaign.backend_selection import open_backend
from testbed.campaign.texts import plan_commands_text, plan_network_text, plan_timeline_text
from testbed.campaign.texts.plan_network_text import Row
from testbed.links.abilities import with_links_that_can
from testbed.planning import make_plan
from testbed.programs import lacking_of_experiment
from testbed.run_selection import RunSelection
from topologies.loader import load_topology
from topologies.quantities import DURATION

ROWS_MAX = 40  # of a section, without --full


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
    machines = list(plan_commands_text.machine_rows(plan, chosen))  # first: it fails if they are not suitable
    left_out = list(_left_out_rows(chosen))  # fails, too, if an image is wrong
    yield from _heading(plan, chosen)
    sections: list[tuple[str, Iterable[Row]]] = [
        ("Regions", plan_network_text.region_rows(plan)),
        ("Streams", plan_network_text.stream_rows(plan)),
        *_content_sections(plan),
        ("Hosts", plan_network_text.host_rows(plan)),
        ("Machines", machines),
        ("WAN links", plan_network_text.wan_rows(plan)),
        ("Routing", plan_network_text.routing_rows(plan)),
        ("TCP", plan_network_text.tcp_rows(plan, chosen)),
        ("Traces", plan_network_text.trace_rows(plan)),
        ("LAN links", plan_network_text.lan_rows(plan, full=full)),
        ("Timeline", plan_timeline_text.timeline_rows(plan, full=full)),
        ("Runs", _run_rows(chosen)),
        ("Left out", left_out),
        ("Expected", [(expectation.text,) for expectation in experiment.expect]),
        ("Expected of all runs together", _expected_of_sweep(chosen)),
        ("Commands", plan_commands_text.command_rows(plan, full=full)),
        ("Disk", plan_commands_text.disk_rows(plan)),
    ]
    for title, rows in sections:
        yield from _section(title, list(rows), full=full)


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
        yield "  " + "  ".join(map(str.ljust, row, widths)).rstrip()
    if len(shown) < len(rows):
        yield f"  and {len(rows) - len(shown)} more (--full shows them)"


def _content_sections(plan: Plan) -> Iterator[tuple[str, Iterable[Row]]]:
    """Yield the sections of a content-based workload: attributes, events and subscriptions."""
    if plan.workload.get("kind") == "content":
        from experiments.workloads import content_text  # it needs NumPy, which most plans do not

        yield "Attributes", content_text.attribute_rows(plan)
        yield "Events", content_text.event_rows(plan)
        yield "Subscriptions", content_text.subscription_rows(plan)
