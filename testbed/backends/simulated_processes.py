"""Start, signals and end of simulated processes: the counterpart of `testbed.processes`."""

from dataclasses import dataclass, field

from experiments.declared import Declared, Trait
from experiments.planned.changes import ProcessChange
from experiments.planned.draining import highest, reached
from experiments.planned.plan import Plan
from experiments.records.observations import ProcessExit, ProcessRecord
from node.core import machine as m
from node.sim.process import Node
from node.sim.sim_network import SimulatedNetwork
from testbed.backends.simulated_files import time_ns
from testbed.errors import TestbedError
from testbed.faults.clocks import Clocks


@dataclass(slots=True)
class SimulatedGeneration:
    """One generation of a process, from its start to its end, as run.json records it."""

    name: str
    exit: ProcessExit | None = None


@dataclass(slots=True)
class SimulatedProcesses:
    """All processes that were started, and how each ended."""

    network: SimulatedNetwork
    declared: Declared
    _generations: list[SimulatedGeneration] = field(default_factory=list)
    _last: dict[str, SimulatedGeneration] = field(default_factory=dict)
    _leaving: set[str] = field(default_factory=set)
    _filled: dict[str, set[str]] = field(default_factory=dict)  # full disks, with the faults that filled them
    _slowed: dict[str, dict[str, int]] = field(default_factory=dict)  # by how much disks are slower, by fault
    _clocks: Clocks = field(default_factory=Clocks)
    _published: dict[int, int] = field(default_factory=dict)  # the last numbers of earlier generations
    _finishing: bool = False

    def start(self, name: str) -> None:
        """Start a process. Raises TestbedError if it still runs."""
        if self._runs(name):
            raise TestbedError(f"{name} still runs")
        self._note_published(name)
        self.network.start(name)
        self._last[name] = SimulatedGeneration(name)
        self._generations.append(self._last[name])
        self._leaving.discard(name)

    def replace(self, name: str) -> None:
        """Start a process on an empty disk. Raises TestbedError if it still runs."""
        if not self._runs(name):
            self.network.disks.lose(name)
            self._filled.pop(name, None)
            self._slowed.pop(name, None)
        self.start(name)

    def give_up(self, name: str) -> None:
        """Notify all others that a process will not come back. Raises TestbedError if it still runs."""
        if self._runs(name):
            raise TestbedError(f"{name} is running")
        self.network.broadcast(m.GiveUp(name))

    def kill(self, name: str) -> None:
        """Kill a process with SIGKILL. Raises TestbedError if it does not run."""
        self._running(name)
        self._note_published(name)
        self.network.kill(name)
        self.ended(name, code=None, signal=9, expected=True)

    def stop(self, name: str) -> None:
        """Stop a process with SIGSTOP. Raises TestbedError if it does not run."""
        self._running(name)
        self.network.stop(name)

    def resume(self, name: str) -> None:
        """Continue a process with SIGCONT. Raises TestbedError if it does not run."""
        if self._running(name).stopped:
            self.network.resume(name)

    def fill(self, name: str, fault: str) -> None:
        """Fill its disk until `fault` is over or the disk is replaced."""
        self._filled.setdefault(name, set()).add(fault)
        self.network.disks.disk_of(name).is_full = True

    def free(self, name: str, fault: str | None) -> None:
        """End a fault that filled its disk; it stays full while another one lasts."""
        filled = self._filled.get(name, set())
        filled.discard(fault or "")
        if filled:
            return
        node = self.network.nodes.get(name)
        self.network.disks.disk_of(name).is_full = False
        if node is not None:
            self.network.disks.free(node)

    def slow_disk(self, change: ProcessChange) -> None:
        """Begin or end a fault that delays each sync of its disk."""
        slowed = self._slowed.setdefault(change.process, {})
        slowed.pop(change.rule or "", None)
        if change.slower_us is not None:
            slowed[change.rule or ""] = change.slower_us
        self.network.disks.disk_of(change.process).slower_us = max(slowed.values(), default=0)

    def set_clock(self, change: ProcessChange) -> None:
        """Begin or end a fault of its clock."""
        self.network.set_clock(change.process, self._clocks.change(change, self.network.clock.now_us))

    def leave(self, name: str) -> None:
        """Let a process finish in order. Raises TestbedError if it does not run."""
        self._running(name)
        self._leaving.add(name)
        self.network.give(name, m.Finish())

    def finish(self) -> None:
        """Let all processes finish in order. Stopped ones are killed, as at the end of the sandbox."""
        self._finishing = True
        for name, node in list(self.network.nodes.items()):
            if node.stopped:
                self.kill(name)
        self.network.broadcast(m.Finish())

    def ended(self, name: str, *, code: int | None, signal: int | None, expected: bool = False) -> None:
        """Record the end of a process."""
        expected = expected or self._finishing or name in self._leaving
        at_ns = time_ns(self.network.clock.now_us)
        self._last[name].exit = ProcessExit(code, signal, at_ns, expected)

    def records(self, plan: Plan) -> tuple[ProcessRecord, ...]:
        """Return the entries of the run's record."""
        hosts = {process.name: process.host for process in plan.processes}
        return tuple(ProcessRecord(each.name, hosts[each.name], exit=each.exit) for each in self._generations)

    def all_silent(self) -> bool:
        """Return whether no process waits for an acknowledgement."""
        nodes = self.network.nodes.values()
        return all(node.finished or node.machine.progress().silent for node in nodes)

    def all_delivered(self) -> bool:
        """Return whether each client has, in order, all acknowledged events."""
        nodes = self.network.nodes.values()
        published = highest([self._published, *(node.machine.progress().published for node in nodes)])
        delivered = [client.machine.progress().delivered for client in self._clients()]
        return reached(published, delivered, self.declared.contract)

    def _note_published(self, name: str) -> None:
        """Record the last numbers that a process has published before its generation ends: they must still be
        delivered.
        """
        if (node := self.network.nodes.get(name)) is not None:
            self._published = highest([self._published, node.machine.progress().published])

    def delivered_per_client(self) -> float:
        """Return the number of delivered events per client, on average."""
        clients = self._clients()
        total = sum(sum(client.machine.progress().delivered.values()) for client in clients)
        return total / max(1, len(clients))

    def _clients(self) -> list[Node]:
        nodes = self.network.nodes.values()
        return [
            node
            for node in nodes
            if self.declared.has(node.spec.role, Trait.SUBSCRIBER) and not node.finished
        ]

    def _running(self, name: str) -> Node:
        if not self._runs(name):
            raise TestbedError(f"{name} is not running")
        return self.network.nodes[name]

    def _runs(self, name: str) -> bool:
        node = self.network.nodes.get(name)
        return node is not None and not node.finished
