"""The planned routes of a routing protocol are those that FRR's daemons give the kernels of real gateways."""

import asyncio
import random
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from experiments.planned.plan import Plan, RoutingPlan
from experiments.planned.plan_routes import next_links
from experiments.records.rundir import RunDirectory
from testbed.links.selection import select_emulator
from testbed.network.network import Network
from testbed.network.routing.daemons import PROGRAMS, RoutingDaemons
from testbed.sandbox.requirements import user_namespace_needed
from tests.testbed.network.plans import make_plan
from tests.testbed.sandboxed import finish, start
from topologies.link_parameters import LinkParameters

pytestmark = [
    pytest.mark.network,
    pytest.mark.slow,
    pytest.mark.skipif(not (PROGRAMS / "ospfd").exists(), reason="frr is not installed: apt-get install frr"),
    pytest.mark.skipif(user_namespace_needed(), reason="FRR's daemons change their user, which needs root"),
]

Link = tuple[int, int, int, int]
"""A link of a topology: two regions, and the delay in each direction, in milliseconds."""
PARALLEL = [(0, 1, 9, 5), (0, 1, 5, 9), (0, 1, 5, 5), (1, 2, 4, 4), (1, 2, 4, 4)]
DETOUR = [(0, 1, 90, 90), (0, 2, 10, 10), (1, 2, 10, 10), (2, 3, 10, 70), (1, 3, 10, 10)]
TIED = [(0, 3, 2, 2), (1, 3, 1, 1), (0, 2, 1, 1), (0, 1, 1, 1), (2, 3, 1, 1), (3, 4, 1, 1), (2, 4, 2, 2)]


def drawn(seed: int, regions: int, links: int) -> list[Link]:
    """Return a connected topology with parallel links and few different delays, so that many routes tie."""
    rng = random.Random(seed)
    ends = [(rng.randrange(number), number) for number in range(1, regions)]
    ends += [tuple(rng.sample(range(regions), 2)) for _ in range(links - len(ends))]
    rng.shuffle(ends)
    return [(a, b, rng.randint(1, 3), rng.randint(1, 3)) for a, b in ends]


TOPOLOGIES = [PARALLEL, DETOUR, TIED, drawn(1, 6, 11)]


def plan_of(protocol: str, topologies: list[list[Link]]) -> Plan:
    """Return a plan whose network has all these topologies, side by side."""
    links: list[Link] = []
    first = 0
    for each in topologies:
        links += [(a + first, b + first, there, back) for a, b, there, back in each]
        first = 1 + max(max(link[:2]) for link in links)
    plan = make_plan(first, 0, pairs=[link[:2] for link in links])
    timed = tuple(
        replace(
            link,
            name=f"link-{number}",
            forward=LinkParameters(delay_us=1000 * there),
            backward=LinkParameters(delay_us=1000 * back),
        )
        for number, (link, (_, _, there, back)) in enumerate(zip(plan.links, links, strict=True))
    )
    return replace(plan, links=timed, captures=(), routing=RoutingPlan(protocol, 1, 4))


def routes_of_kernels(protocol: str, topologies: list[list[Link]]) -> list[list[str]]:
    """Return region, target and link of each route, after the daemons have settled."""
    plan = plan_of(protocol, topologies)
    with tempfile.TemporaryDirectory() as folder, Network(plan, select_emulator("relay", 1)) as network:
        daemons = RoutingDaemons(plan, RunDirectory(Path(folder)), network.netns)

        async def run() -> list[list[str]]:
            try:
                await daemons.start()
                now = {(each.region, each.target): each.link for each in daemons.changes()}
                return sorted([*pair, link] for pair, link in now.items() if link)
            finally:
                await daemons.stop()

        return asyncio.run(run())


def test_kernels_have_the_planned_routes():
    started = {name: start(routes_of_kernels, name, TOPOLOGIES) for name in ("ospf", "bgp")}
    for protocol, process in started.items():
        table = next_links(plan_of(protocol, TOPOLOGIES))
        planned = [[a, b, link.name] for a, row in table.items() for b, link in row.items()]
        assert finish(process) == sorted(planned)
