"""FRR's daemons in the gateways of a run, and the changes of the gateways' routes.

Each folder that the daemons write to is a tmpfs, which exists only in the run's sandbox: nothing of the
machine's own FRR is read or changed, and nothing is left, however the run ends. The run directory keeps the
configurations, the daemons' logs, and what `ip monitor` tells of each gateway's routes and interfaces. An
interface that goes down takes its routes along, and the kernel does not report these (`fib_sync_down_dev`).
"""

import asyncio
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from ipaddress import IPv4Network
from pathlib import Path

from experiments.planned.plan import Plan
from experiments.planned.plan_routes import hops
from experiments.records.observations import RouteChange
from experiments.records.rundir import RunDirectory
from node.core.program import Need
from systems.needs import missing, version_of
from testbed.errors import MachineError, TestbedError
from testbed.network.network_layout import make_layout
from testbed.network.routing.frr_configuration import configuration, daemons
from testbed.sandbox.passing_mount import mount_tmpfs_anywhere
from testbed.sandbox.requirements import has_other_users, search_path
from topologies.routing import OSPF

PROGRAMS = Path("/usr/lib/frr")
FILES, FILES_BYTES = Path("/var/tmp/frr"), 16 << 20  # noqa: S108 (hidden by a tmpfs)
"""The folder where daemons write logs of crashes; here it also has their configurations and sockets."""
STATES = Path("/run/frr")
"""The folder where daemons write states of restarts."""
USER = "frr"
SOCKET_TIMEOUT_S = 20.0
LOOK_S = 0.1
QUIET_S = 6.0
"""Routes have settled when none changed for this long: OSPF tells news of one gateway every 5 s (RFC 2328,
MinLSInterval). Its gateways may also miss each other's first hello.
"""
SETTLE_HELLOS = 4
"""Routes must settle within this many hello intervals and a minute."""
CHANGES_MAX = 100_000
_CHANGE = re.compile(r"\[(\S+)\] (Deleted )?(\d+\.\d+\.\d+\.\d+/\d+) .*?dev (\S+)")
_INTERFACE = re.compile(r"\[(\S+)\] (?:Deleted )?\d+: ([^:@]+)[^<]*<([^>]*)>")


def check_routing(plan: Plan) -> None:
    """Raise MachineError if the plan has a routing protocol and this machine cannot run its daemons."""
    if plan.routing is None:
        return
    needs = [_need(name) for name in daemons(plan.routing)]
    lacking = list(missing(needs, search_path(os.environ)))
    asked = f"`routing: {plan.routing.protocol}`"
    if lacking:
        raise MachineError(f"{asked} needs a program that is not installed: {lacking[0].get}")
    if not has_other_users():
        raise MachineError(
            f"{asked} needs root: FRR's daemons change their user, and the sandbox of an ordinary user has"
            " no other"
        )


def routing_versions(plan: Plan) -> dict[str, str | None]:
    """Return FRR's version by name; empty if routes are fixed."""
    return {} if plan.routing is None else {USER: version_of(_need("zebra"), search_path(os.environ))}


def _need(daemon: str) -> Need:
    program = str(PROGRAMS / daemon)
    return Need("program", program, "Debian and Ubuntu: package frr", (program, "--version"))


class RoutingDaemons:
    """The daemons of all gateways. netns: the path of a host's namespace."""

    def __init__(self, plan: Plan, run: RunDirectory, netns: Callable[[str], str]) -> None:
        self._plan = plan
        self._folder = run.routing
        self._netns = netns
        self._layout = make_layout(plan)
        self._gateways = {region.gateway: region.name for region in plan.regions}
        self._running: dict[str, asyncio.subprocess.Process] = {}  # by the names of their logs

    async def start(self) -> None:
        """Start all daemons and wait until the gateways' routes have settled. Raises TestbedError."""
        if self._plan.routing is None:
            return
        self._folder.mkdir(exist_ok=True)
        for folder in (FILES, STATES):
            mount_tmpfs_anywhere(folder, FILES_BYTES)
            shutil.chown(folder, USER, USER)
        await asyncio.gather(*map(self._start_gateway, self._gateways))
        await self._settle(60.0 + SETTLE_HELLOS * self._plan.routing.hello_s)

    def problems(self) -> list[str]:
        """Return the daemons that ended by themselves."""
        ended = [name for name, each in self._running.items() if each.returncode is not None]
        return [f"{name} ended unexpectedly: see routing/{name}.log" for name in ended]

    def changes(self) -> tuple[RouteChange, ...]:
        """Return all changes of routes between regions so far, by time."""
        found = (each for gateway in self._gateways for each in self._changes_of(gateway))
        return tuple(sorted(found, key=lambda change: change.t_ns))[:CHANGES_MAX]

    async def stop(self) -> None:
        """Kill all daemons. Idempotent."""
        running, self._running = self._running, {}
        for each in running.values():
            if each.returncode is None:
                each.kill()
        await asyncio.gather(*(each.wait() for each in running.values()))

    async def _start_gateway(self, gateway: str) -> None:
        assert self._plan.routing is not None
        folder = FILES / gateway
        folder.mkdir()
        await self._run(gateway, "routes", ["ip", "-ts", "-4", "monitor", "route", "link"])
        for daemon in daemons(self._plan.routing):
            text = configuration(self._plan, self._layout, gateway, daemon)
            for file in (folder / f"{daemon}.conf", self._folder / f"{gateway}-{daemon}.conf"):
                file.write_text(text)
            shutil.chown(folder, USER)
            await self._run(gateway, daemon, _command(folder, daemon))
            await self._await_socket(folder / f"{daemon}.vty", f"{gateway}-{daemon}")

    async def _run(self, gateway: str, name: str, command: list[str]) -> None:
        with (self._folder / f"{gateway}-{name}.log").open("wb") as log:
            self._running[f"{gateway}-{name}"] = await asyncio.create_subprocess_exec(
                *("nsenter", f"--net={self._netns(gateway)}", "--", *command),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "TZ": "UTC"},  # of the times in the logs
            )

    async def _await_socket(self, path: Path, name: str) -> None:
        deadline_s = time.monotonic() + SOCKET_TIMEOUT_S
        while not path.exists():
            if self._running[name].returncode is not None or time.monotonic() > deadline_s:
                raise TestbedError(f"{name} does not start: see routing/{name}.log")
            await asyncio.sleep(LOOK_S)

    async def _settle(self, timeout_s: float) -> None:
        """Wait until all gateways have routes to all regions that they can reach, which stay as they are."""
        assert self._plan.routing is not None
        wanted = set(hops(self._plan))
        quiet_s = QUIET_S + (self._plan.routing.hello_s if self._plan.routing.protocol == OSPF else 0)
        begun_s = changed_s = time.monotonic()
        last: dict[tuple[str, str], str] = {}
        while not (last.keys() >= wanted and time.monotonic() - changed_s > quiet_s):
            if time.monotonic() - begun_s > timeout_s:
                source, target = min(wanted - last.keys(), default=("", ""))
                said = f"{source} has no route to {target}" if source else "they still change"
                remedy = "a slow or lossy link needs a longer interval or larger multiplier of bfd"
                raise TestbedError(
                    f"routes have not settled after {timeout_s:.0f} s: {said}: see routing/; {remedy}"
                )
            if problems := self.problems():
                raise TestbedError(problems[0])
            await asyncio.sleep(LOOK_S)
            now = {(each.region, each.target): each.link for each in self.changes()}
            current = {pair: link for pair, link in now.items() if link}
            if current != last:
                last, changed_s = current, time.monotonic()

    def _changes_of(self, gateway: str) -> Iterator[RouteChange]:
        log = self._folder / f"{gateway}-routes.log"
        links = {interface.name: interface.link for interface in self._layout.of_host(gateway)}
        targets = {IPv4Network(region.subnet): region.name for region in self._plan.regions}
        own, last = self._gateways[gateway], dict[str, str]()
        for line in log.read_text().splitlines() if log.exists() else ():
            if found := _CHANGE.match(line):
                target = targets.get(IPv4Network(found[3]))
                changed = {} if target is None else {target: "" if found[2] else links.get(found[4], "")}
            elif (found := _INTERFACE.match(line)) and "LOWER_UP" not in found[3].split(","):
                down = links.get(found[2])
                changed = {target: "" for target, link in last.items() if link and link == down}
            else:
                continue
            when = datetime.fromisoformat(found[1]).replace(tzinfo=UTC)
            t_ns = int(when.timestamp()) * 10**9 + when.microsecond * 1000
            for target, link in changed.items():
                if target != own and last.get(target, "") != link:  # the same next hop may get a new number
                    last[target] = link
                    yield RouteChange(t_ns, own, target, link)


def _command(folder: Path, daemon: str) -> list[str]:
    sockets = ["-z", str(folder / "zserv.api"), "--vty_socket", str(folder), "-A", "127.0.0.1", "-P", "0"]
    own = {"zebra": ["-e", "1"], "bfdd": ["--bfdctl", str(folder / "bfdd.sock")]}  # one route to a region
    files = ["-f", str(folder / f"{daemon}.conf"), "-i", str(folder / f"{daemon}.pid"), "--log", "stdout"]
    return [str(PROGRAMS / daemon), *files, *sockets, *own.get(daemon, [])]
