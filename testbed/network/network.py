"""The network of a run: brought up from a plan, changed while it is up, and probed.

Mininet starts a shell in its own namespaces for each host; interfaces, bridges, addresses, routes and
neighbours are then added in a few batches (`commands`), and the link emulator starts. The network is brought
up from the outside in: the hosts file and the hosts, their settings, all interfaces at once, then the
configuration inside each host. Interfaces are not deleted at the end: they end with the sandbox's namespaces.

This module does not start node processes or captures, and does not schedule changes.
"""

import contextlib
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.planned.changes import (
    LinkChange,
    LinkDirectionName,
    LinkState,
    ProcessAction,
    ProcessChange,
)
from experiments.planned.plan import CapturePlan, Plan
from experiments.records.observations import RoundTripProbe, When
from testbed.assignment import Assignment, assigned_part, changes_here, whole_plan
from testbed.batches import run_batch
from testbed.errors import TestbedError
from testbed.links.emulator import Applied, LinkEmulator, SelectedPackets
from testbed.network import commands, packet_filter, probes
from testbed.network.connection_reset import reset_connections
from testbed.network.group_routing import GroupRouting
from testbed.network.namespaces import in_each_namespace, write_settings
from testbed.network.neighbour_table import NeighbourTable
from testbed.network.network_layout import (
    BridgePort,
    HostInterface,
    Neighbour,
    capture_point,
    mac_address,
    make_layout,
)
from testbed.sandbox.passing_mount import bind, passing_mount

if TYPE_CHECKING:
    from mininet.net import Mininet

CONGESTION_CONTROL = "net/ipv4/tcp_congestion_control"
TUNNELS_TIMEOUT_S = 20.0
LOOK_S = 0.01
ALWAYS_THERE = frozenset(
    {"lo", "tunl0", "gre0", "gretap0", "erspan0", "ip_vti0", "ip6_vti0", "sit0", "ip6tnl0", "ip6gre0"}
)
"""Interfaces that the kernel creates in a new network namespace."""
LINES_AT_ONCE = 500
"""Lines of a batch between two calls of `check`."""


class Network:
    """The network of a run, as a context manager that is entered in a sandbox.

    It creates everything in the sandbox's root namespace. assignment: the part of the plan for this machine;
    by default all of it. The supervisor creates its tunnels, outside the sandbox. check: called repeatedly
    while the network is brought up; may raise to abort.
    """

    def __init__(
        self,
        plan: Plan,
        emulator: LinkEmulator,
        assignment: Assignment | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self._check = check
        self._plan = plan
        self._assignment = whole_plan(plan) if assignment is None else assignment
        self._hosts = tuple(host for host in plan.hosts if host.name in self._assignment.hosts)
        self._emulator = emulator
        self._layout = make_layout(plan, self._assignment)
        self._down: set[tuple[str, LinkDirectionName]] = set()
        self._resources = contextlib.ExitStack()
        self._namespaces: dict[str, str] = {}
        self._neighbour_tables: dict[str, NeighbourTable] = {}  # of hosts that are separated from others
        self.mininet: Mininet
        self.congestion_control: str = ""
        """The congestion control that the hosts' TCP uses."""

    def __enter__(self) -> "Network":
        """Bring the network up.

        Raises MachineError if this machine does not support it, TestbedError if a step fails.
        """
        tunnels = [tunnel.interface for tunnel in self._assignment.tunnels]
        _check_sandbox(tunnels)
        with contextlib.ExitStack() as stack:
            _bind_hosts_file(commands.hosts_file(self._plan.hosts))
            self._start_hosts(stack)
            _await_interfaces(tunnels)
            self._configure()
            stack.callback(self._emulator.stop)
            self._emulator.start(self._layout.wirings)
            self._begin_selections()
            self._route_groups(stack)
            self._resources = stack.pop_all()
        for host in self._separated_hosts():
            self._neighbour_table(host)  # opened now, so that it does not delay a fault
        return self

    def __exit__(self, *_: object) -> None:
        self._resources.close()

    def netns(self, host: str) -> str:
        """Return the path of a host's network namespace."""
        return self._namespaces[host]

    def capture_points(self) -> list[tuple[CapturePlan, str | None, str]]:
        """Return each capture with its namespace's path (None is the root namespace) and its interface."""
        return [
            (
                capture,
                None if capture.host is None else self._namespaces[capture.host],
                capture_point(self._layout, self._plan, self._assignment, capture),
            )
            for capture in assigned_part(self._plan, self._assignment).captures
        ]

    def change(self, change: LinkChange) -> Applied:
        """Apply a change to one link direction; returns when it was requested and in effect.

        DOWN takes down the interface that sends in this direction (a gateway's, or on a LAN link a host's or
        a bridge port), so its owner loses the route and answers "network unreachable", and it cannot receive
        either. Before that, at the recorded instant, the direction becomes a blackhole, which also drops the
        frames in flight. Raises TestbedError.
        """
        if change.selects is not None:
            return self._select(change)
        requested_ns = time.time_ns()
        key = (change.link, change.direction)
        is_down, was_down = change.state is LinkState.DOWN, key in self._down
        sender = self._layout.sender(change.link, change.direction)
        blackhole = change.state is not LinkState.UP
        done = self._emulator.change(change.link, change.direction, change.parameters, blackhole=blackhole)
        if is_down and not was_down:
            self._run_at(sender, [f"link set {sender.name} down"], doing=f"taking {change.link} down")
            self._down.add(key)
        if not was_down or is_down:
            return Applied(requested_ns, done.applied_ns)
        self._raise(sender, change.link)
        self._down.discard(key)
        return Applied(requested_ns, time.time_ns())

    def _begin_selections(self) -> None:
        """Let packets that faults will select cross their links beside the others from the start."""
        links = {link.name: link for link in self._plan.links}
        for _, change in changes_here(self._plan, self._assignment):
            if isinstance(change, LinkChange) and change.selects is not None:
                usual = links[change.link].towards(change.direction)
                self._select(replace(change, state=LinkState.UP, parameters=usual))

    def _select(self, change: LinkChange) -> Applied:
        """Apply a change to some packets of a link direction."""
        assert change.selects is not None
        process = change.selects.process
        address = None if process is None else self._address_of(process)
        return self._emulator.change(
            change.link,
            change.direction,
            change.parameters,
            blackhole=change.state is not LinkState.UP,
            selects=SelectedPackets(address, change.selects.port),
        )

    def begin_traces(self, zero_ns: int) -> None:
        """Let links follow their traces, which begin at `zero_ns`. Raises TestbedError."""
        self._emulator.begin_traces(zero_ns)

    def separate(self, process: str, peers: Sequence[str], *, apart: bool) -> Applied:
        """Drop the frames that a process's host sends to `peers` in its region, or deliver them again.

        The host's own MAC address replaces those of its peers: a bridge does not send a frame back to its
        ingress port (IEEE 802.1D, 7.7), so it drops the frame silently. Raises TestbedError.
        """
        requested_ns = time.time_ns()
        host = self._host_of(process)
        interface = next(each for each in self._layout.interfaces if each.host == host)
        addresses = [self._address_of(peer) for peer in peers]
        self._neighbour_table(host).replace(
            Neighbour(address, interface.mac if apart else mac_address(address), interface.name)
            for address in addresses
        )
        return Applied(requested_ns, time.time_ns())

    def reset(self, process: str, peers: Sequence[str], port: int | None) -> Applied:
        """Reset the established TCP connections of a process's host.

        peers, port: only connections with their hosts, or from or to this port. Raises TestbedError.
        """
        requested_ns = time.time_ns()
        addresses = [self._address_of(peer) for peer in peers]
        host = self._host_of(process)
        in_each_namespace(self._namespaces, [host], lambda _: reset_connections(addresses, port))
        return Applied(requested_ns, time.time_ns())

    def block(self, change: ProcessChange) -> Applied:
        """Begin or end a rule that blocks packets from a process's host to its peers' hosts.

        Raises TestbedError.
        """
        requested_ns = time.time_ns()
        addresses = [self._address_of(peer) for peer in change.peers]
        host = self._host_of(change.process)
        script = (
            packet_filter.block_script(change, addresses)
            if change.action is ProcessAction.BLOCK
            else packet_filter.unblock_script(change)
        )
        in_each_namespace(self._namespaces, [host], lambda _: packet_filter.execute(script))
        return Applied(requested_ns, time.time_ns())

    def _host_of(self, process: str) -> str:
        return next(each.host for each in self._plan.processes if each.name == process)

    def _address_of(self, process: str) -> str:
        host = self._host_of(process)
        return next(each.address for each in self._plan.hosts if each.name == host)

    def _neighbour_table(self, host: str) -> NeighbourTable:
        if host not in self._neighbour_tables:
            table = in_each_namespace(self._namespaces, [host], lambda _: NeighbourTable())[host]
            self._neighbour_tables[host] = table
            self._resources.callback(table.close)
        return self._neighbour_tables[host]

    def probe(self, when: When) -> list[RoundTripProbe]:
        """Measure round trips in microseconds between every two regions, from one host to one host.

        Only pairs whose sending host is on this machine are measured. Echoes without a reply in time
        (`probes.LOOKS`) are missing.
        """
        hosts = {
            region.name: next(
                (host for host in self._plan.hosts if host.region == region.name and host.lan_link),
                next(host for host in self._plan.hosts if host.name == region.gateway),
            )
            for region in self._plan.regions
        }
        regions = list(hosts)
        pairs = [
            probes.ProbePair(origin, target, hosts[origin].name, hosts[target].address)
            for number, origin in enumerate(regions)
            for target in regions[number + 1 :]
            if hosts[origin].name in self._assignment.hosts
        ]
        round_trips = probes.measure(pairs, self._namespaces)
        return [
            RoundTripProbe(when, pair.origin, pair.target, tuple(rtt_us))
            for pair, rtt_us in zip(pairs, round_trips, strict=True)
        ]

    def _separated_hosts(self) -> list[str]:
        """Return the hosts on this machine whose processes the plan separates from others."""
        apart = {
            change.process
            for change in self._plan.changes
            if isinstance(change, ProcessChange) and change.action is ProcessAction.SEPARATE
        }
        named = {process.host for process in self._plan.processes if process.name in apart}
        return [host.name for host in self._hosts if host.name in named]

    def _start_hosts(self, stack: contextlib.ExitStack) -> None:
        # Importing Mininet takes as long as starting several hosts, and only this method needs it.
        from testbed.network import mininet_nodes  # noqa: PLC0415

        self.mininet = mininet_nodes.make_mininet()
        stack.callback(mininet_nodes.stop_shells, self.mininet.hosts)
        mininet_nodes.add_hosts(self.mininet, [host.name for host in self._hosts], self._check)
        self._namespaces = {host.name: f"/proc/{host.pid}/ns/net" for host in self.mininet.hosts}
        mininet_nodes.register_layout(self.mininet, self._layout)

    def _configure(self) -> None:
        names = [host.name for host in self._hosts]
        write_settings(commands.ROOT_SETTINGS, optional=commands.OPTIONAL_SETTINGS)
        used = in_each_namespace(self._namespaces, names, self._set_host, self._check)
        self.congestion_control = " ".join(sorted(set(used.values())))
        pids = {host.name: host.pid for host in self.mininet.hosts}
        lines = (
            *commands.outside_lines(self._layout, pids),
            *commands.tunnel_lines(self._assignment.tunnels),
        )
        for first in range(0, len(lines), LINES_AT_ONCE):
            run_batch("ip", lines[first : first + LINES_AT_ONCE], doing="wiring the network")
            self._check()
        run_batch("bridge", commands.table_lines(self._layout.bridges), doing="wiring the regions' bridges")
        in_each_namespace(self._namespaces, names, self._configure_inside, self._check)

    def _set_host(self, host: str) -> str:
        """Write a host's settings; returns its congestion control."""
        settings = commands.GATEWAY_SETTINGS if host in self._layout.gateways else commands.HOST_SETTINGS
        write_settings(settings, optional=commands.OPTIONAL_SETTINGS)
        path = Path("/proc/sys") / CONGESTION_CONTROL
        if self._plan.congestion_control is not None:
            # An ordinary user may only choose among tcp_allowed_congestion_control; the caller compares the
            # plan with the one in use.
            with contextlib.suppress(OSError):
                path.write_text(self._plan.congestion_control)
        return path.read_text().strip()

    def _configure_inside(self, host: str) -> None:
        run_batch("ip", commands.inside_lines(self._layout, host), doing=f"configuring {host}")
        for interface in self._layout.of_host(host):
            _split_bundles(interface.name)

    def _route_groups(self, stack: contextlib.ExitStack) -> None:
        """Forward multicast between regions, for programs, if no region is on another machine."""
        if self._plan.programs is not None and self._assignment == whole_plan(self._plan):
            routing = GroupRouting(self._plan, self._layout)
            in_each_namespace(self._namespaces, sorted(self._layout.gateways), routing.open_gateway)
            stack.enter_context(routing)

    def _raise(self, sender: HostInterface | BridgePort, link: str) -> None:
        lines = [f"link set {sender.name} up"]
        if isinstance(sender, HostInterface):
            lines = commands.raise_lines(self._layout, sender)
        self._run_at(sender, lines, doing=f"taking {link} up")

    def _run_at(self, sender: HostInterface | BridgePort, lines: Sequence[str], *, doing: str) -> None:
        """Run `ip` lines in the namespace of an interface."""
        if isinstance(sender, BridgePort):
            run_batch("ip", lines, doing=doing)
        else:
            in_each_namespace(self._namespaces, [sender.host], lambda _: run_batch("ip", lines, doing=doing))


def _split_bundles(interface: str) -> None:
    """Let the kernel cut bundles of UDP datagrams (UDP_SEGMENT, udp(7)) before they leave an interface.

    A bundle's frame does not tell where its datagrams begin, so packets could not prove what a link did to
    each of them.
    """
    command = ["ethtool", "-K", interface, "tx-udp-segmentation", "off"]
    with contextlib.suppress(FileNotFoundError):  # then only links that carry bundles stay unproven
        subprocess.run(command, check=False, capture_output=True)  # fails on kernels that send no such frames


def _check_sandbox(expected: Sequence[str]) -> None:
    """Raise TestbedError in a machine's own namespace, or that of another network."""
    others = [name for _, name in socket.if_nameindex() if name not in {*ALWAYS_THERE, *expected}]
    if others:
        raise TestbedError(
            f"a network needs its own sandbox, but this namespace has {', '.join(sorted(others))}"
        )


def _await_interfaces(names: Sequence[str]) -> None:
    """Wait for the supervisor to move these interfaces here. Raises TestbedError after a timeout."""
    deadline_s = time.monotonic() + TUNNELS_TIMEOUT_S
    while missing := set(names).difference(name for _, name in socket.if_nameindex()):
        if time.monotonic() > deadline_s:
            raise TestbedError(f"no tunnel to another machine: {', '.join(sorted(missing))} did not appear")
        time.sleep(LOOK_S)


def _bind_hosts_file(text: str) -> None:
    """Mount the run's own hosts file over /etc/hosts, for all processes in this mount namespace."""
    with passing_mount() as folder:
        file = folder / "hosts"
        file.write_text(text)
        file.chmod(0o644)
        bind(file, Path("/etc/hosts"))
