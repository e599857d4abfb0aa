"""From a plan to the simulated network that `node.sim` runs. Pure."""

from collections.abc import Iterator

from experiments.rundir import RunDirectory
from node.core.specification import Member, NodeSpec
from node.sim.network import Build, Network
from node.sim.process import Observer
from node.sim.wires import Hop, Lan, Line, Wires
from node.systems import build_machine
from testbed.network.routes import hops
from testbed.plan import Direction, LinkPlan, Plan, ProcessChange
from testbed.runner.specs import node_specs
from topologies.shape import Shape


def make_network(plan: Plan, run: RunDirectory, observer: Observer, build: Build = build_machine) -> Network:
    """The plan's network, with no process started yet."""
    specs = make_specs(plan, run)
    return Network(specs, make_wires(plan), build=build, start=False, observer=observer, seed=plan.seed)


def make_specs(plan: Plan, run: RunDirectory) -> list[NodeSpec]:
    """What each process is told. Members are the same object for all who know the same: thousands do."""
    given = list(node_specs(plan, plan.processes, run, lambda host: "").values())
    lists = {id(one["members"]): one["members"] for one in given}
    members = {at: tuple(Member(**member) for member in each) for at, each in lists.items()}
    return [NodeSpec(**{**one, "members": members[id(one["members"])], "netns": None}) for one in given]


def make_wires(plan: Plan) -> Wires:
    """How hosts and regions are joined."""
    lans: dict[str, Lan] = {}
    lines: dict[Hop, Line] = {}
    for link in plan.links:
        if link.kind == "lan":
            lans[link.b] = Lan(line_of(link.forward), line_of(link.backward))
        else:
            lines[link.a, link.b] = line_of(link.forward)
            lines[link.b, link.a] = line_of(link.backward)
    apart = frozenset(pairs_kept_apart(plan))
    lines |= dict.fromkeys(apart, Line(0))
    return Wires(0, {}, lans=lans, lines=lines, routes=hops(plan), apart=apart)


def pairs_kept_apart(plan: Plan) -> Iterator[Hop]:
    """The hosts of which some change keeps one's packets from the other."""
    hosts = {process.name: process.host for process in plan.processes}
    for change in plan.changes:
        if isinstance(change, ProcessChange):
            for peer in change.peers:
                yield hosts[change.process], hosts[peer]
                yield hosts[peer], hosts[change.process]


def line_of(shape: Shape) -> Line:
    """The simulator knows no jitter and no limit of queues."""
    return Line(shape.delay_us, shape.rate_bits_per_s, shape.loss)


def hop_of(link: LinkPlan, direction: Direction) -> Hop:
    """From which region to which a direction of a link goes."""
    return (link.a, link.b) if direction is Direction.FORWARD else (link.b, link.a)
