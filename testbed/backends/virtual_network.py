"""From a plan to the simulated network that `node.sim` runs, and to its changes while it runs."""

from collections.abc import Callable, Iterator

from experiments.plan import Direction, LinkChange, LinkPlan, LinkState, Plan, ProcessAction, ProcessChange
from experiments.rundir import RunDirectory
from node.core.specification import Member, NodeSpec
from node.sim.network import Build, Network
from node.sim.process import Observer
from node.sim.wires import Hop, Lan, Line, Wires
from node.systems import build_machine
from testbed.backends.virtual_processes import VirtualProcesses
from testbed.errors import TestbedError
from testbed.faults.application import Carried, Change
from testbed.network.routes import hops
from testbed.runner.specs import node_specs
from topologies.link_parameters import LinkParameters


def make_network(plan: Plan, run: RunDirectory, observer: Observer, build: Build = build_machine) -> Network:
    """The plan's network, with no process started yet."""
    specs = make_specs(plan, run)
    return Network(specs, make_wires(plan), build=build, start=False, observer=observer, seed=plan.seed)


def make_specs(plan: Plan, run: RunDirectory) -> list[NodeSpec]:
    """What each process is told. Members are the same object for all who know the same: thousands do."""
    given = node_specs(plan, plan.processes, run, lambda host: "")
    lists = {id(one["members"]): one["members"] for one in given.values()}
    members = {at: tuple(Member(**member) for member in each) for at, each in lists.items()}
    asked = {process.name: process.subscriptions for process in plan.processes}
    return [
        NodeSpec(
            **{**one, "members": members[id(one["members"])], "subscriptions": asked[name], "netns": None}
        )
        for name, one in given.items()
    ]


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


def line_of(parameters: LinkParameters) -> Line:
    """The simulator knows no jitter and no limit of queues."""
    return Line(parameters.delay_us, parameters.rate_bits_per_s, parameters.loss)


def hop_of(link: LinkPlan, direction: Direction) -> Hop:
    """From which region to which a direction of a link goes."""
    return (link.a, link.b) if direction is Direction.FORWARD else (link.b, link.a)


class VirtualFaults:
    """Carries out a plan's changes of links and processes.

    Knows which directions of links are cut now. BLACKHOLE and DOWN are the same here: silence.
    """

    def __init__(self, plan: Plan, network: Network, processes: VirtualProcesses) -> None:
        self._network = network
        self._hosts = {process.name: process.host for process in plan.processes}
        self._links = {link.name: link for link in plan.links}
        self._cut: set[tuple[str, Direction]] = set()
        self._actions: dict[ProcessAction, Callable[[str], None]] = {
            ProcessAction.KILL: processes.kill,
            ProcessAction.STOP: processes.stop,
            ProcessAction.CONTINUE: processes.go_on,
            ProcessAction.RESTART: processes.start,
            ProcessAction.REPLACE: processes.replace,
            ProcessAction.GIVE_UP: processes.give_up,
            ProcessAction.JOIN: processes.start,
            ProcessAction.LEAVE: processes.leave,
        }

    def carry_out(self, change: Change, now_ns: int) -> Carried:
        """Do it now; what came of it."""
        if isinstance(change, LinkChange):
            self._change_link(change)
            return Carried(change, now_ns, now_ns)
        if change.peers:
            self._change_pairs(change)
            return Carried(change, now_ns, now_ns)
        try:
            self._actions[change.action](change.process)
        except TestbedError as error:
            return Carried(change, now_ns, None, str(error))
        return Carried(change, now_ns, now_ns)

    def _change_pairs(self, change: ProcessChange) -> None:
        act = self._network.cut if change.action is ProcessAction.SEPARATE else self._network.heal
        for peer in change.peers:
            act(self._hosts[change.process], self._hosts[peer], both=False)

    def _change_link(self, change: LinkChange) -> None:
        hop = hop_of(self._links[change.link], change.direction)
        way = (change.link, change.direction)
        self._network.shape(*hop, line_of(change.parameters))
        is_cut = change.state is not LinkState.UP
        if is_cut and way not in self._cut:
            self._cut.add(way)
            self._network.cut(*hop, both=False)
        elif not is_cut and way in self._cut:
            self._cut.remove(way)
            self._network.heal(*hop, both=False)
