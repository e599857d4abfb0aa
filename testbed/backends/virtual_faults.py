"""Carries out a plan's changes of links and processes in a simulated network."""

from collections.abc import Callable

from node.sim.network import Network
from testbed.backends.virtual_network import hop_of, line_of
from testbed.backends.virtual_processes import VirtualProcesses
from testbed.errors import TestbedError
from testbed.faults import Carried, Change
from testbed.plan import Direction, LinkChange, LinkState, Plan, ProcessAction, ProcessChange


class VirtualFaults:
    """Knows which directions of links are cut now. BLACKHOLE and DOWN are the same here: silence."""

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
        self._network.shape(*hop, line_of(change.shape))
        is_cut = change.state is not LinkState.UP
        if is_cut and way not in self._cut:
            self._cut.add(way)
            self._network.cut(*hop, both=False)
        elif not is_cut and way in self._cut:
            self._cut.remove(way)
            self._network.heal(*hop, both=False)
