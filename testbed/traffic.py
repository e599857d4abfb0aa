"""Background traffic made with iperf3: a server for each burst from before time 0, a client at its time.

All generators run in their hosts' namespaces and die with the sandbox. Each burst has its own server, port
and connections, so a burst that a cut keeps from ending does not block the others. A client first negotiates
with its server over a control connection, so traffic begins some round trips after the planned time. The run
directory keeps both sides' reports as iperf3's JSON; `analysis.timelines.links.traffic` reads them, and
reports clients that could not connect.
"""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from experiments.planned.plan import BurstPlan, Plan, TrafficPlan
from experiments.records.rundir import RunDirectory
from node.core.program import Need
from systems.needs import missing, version_of
from testbed.errors import MachineError, TestbedError
from testbed.sandbox.requirements import search_path
from testbed.steady_clock import steady_clock

GENERATOR = Need("program", "iperf3", "Debian and Ubuntu: package iperf3", ("iperf3", "--version"))
WITHOUT_RIGHTS = (
    *("setpriv", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all", "--"),
)
"""A prefix that starts a generator without capabilities: it needs none to send and receive."""
LISTEN_TIMEOUT_S = 30.0
LOOK_S = 0.02
END_GRACE_S = 10.0
"""Time after a burst for client and server to exchange their results: some round trips, through full
queues.
"""
END_TIMEOUT_S = 5.0
"""For a generator that was asked to end."""
BLOCKS_PER_S = 100
BLOCK_BYTES_MIN, BLOCK_BYTES_MAX = 1_000, 128_000
"""Bytes that rate-limited TCP writes at once: iperf3's default, 128 KiB, is a second of a narrow link."""
INTERVALS, INTERVAL_S_MAX = 600, 60
"""About how many intervals a report has, and iperf3's longest interval."""
LISTENING = "0A"
"""The state LISTEN in /proc/net/tcp (proc_pid_net(5))."""


def check_generator(plan: Plan) -> None:
    """Raise MachineError if the plan has background traffic and iperf3 is missing, with how to get it."""
    if plan.traffic and list(missing([GENERATOR], search_path(os.environ))):
        needed = f"`{GENERATOR.name}` ({GENERATOR.get})"
        raise MachineError(f"background traffic needs a program that is not installed: {needed}")


def generator_versions(plan: Plan) -> dict[str, str | None]:
    """Return the version of the traffic generator by name; empty if the plan has no traffic."""
    return {GENERATOR.name: version_of(GENERATOR, search_path(os.environ))} if plan.traffic else {}


def server_command(netns: str, burst: BurstPlan) -> list[str]:
    """Return the argument list of a burst's receiver, which serves one client."""
    return [*_enter(netns), "iperf3", "--server", "--one-off", "--json", "--port", str(burst.port)]


def client_command(netns: str, address: str, traffic: TrafficPlan, burst: BurstPlan) -> list[str]:
    """Return the argument list of a burst's sender."""
    to = ["--client", address, "--port", str(burst.port), "--time", str(burst.length_s)]
    patience = ["--connect-timeout", str(burst.length_s * 1000)]
    periods = ["--interval", str(min(INTERVAL_S_MAX, max(1, burst.length_s // INTERVALS)))]
    return [*_enter(netns), "iperf3", *to, "--json", *periods, *patience, *_load(traffic)]


def _enter(netns: str) -> list[str]:
    return ["nsenter", f"--net={netns}", "--", *WITHOUT_RIGHTS]


def _load(traffic: TrafficPlan) -> list[str]:
    if traffic.protocol == "udp":
        return ["--udp", "--bitrate", str(traffic.rate_bits_per_s)]
    flows = ["--parallel", str(traffic.flows)]
    if traffic.rate_bits_per_s is None:
        return flows
    rate = traffic.rate_bits_per_s // traffic.flows
    block = min(BLOCK_BYTES_MAX, max(BLOCK_BYTES_MIN, rate // 8 // BLOCKS_PER_S))
    return [*flows, "--bitrate", str(rate), "--length", str(block)]


@dataclass(frozen=True, slots=True)
class _Burst:
    traffic: TrafficPlan
    number: int
    plan: BurstPlan


class TrafficGenerators:
    """All generators of a run. netns: the path of a host's namespace."""

    def __init__(self, plan: Plan, run: RunDirectory, netns: Callable[[str], str]) -> None:
        self._plan = plan
        self._run = run
        self._netns = netns
        self._addresses = {host.name: host.address for host in plan.hosts}
        self._servers: dict[int, asyncio.subprocess.Process] = {}  # by port
        self._clients: list[asyncio.Task[None]] = []

    async def listen(self) -> None:
        """Start all servers and wait until they listen. Raises TestbedError."""
        if not self._plan.traffic:
            return
        self._run.traffic.mkdir(exist_ok=True)
        for burst in self._bursts():
            command = server_command(self._netns(burst.traffic.target), burst.plan)
            report = self._run.traffic_server_report(burst.traffic.name, burst.number)
            self._servers[burst.plan.port] = await _started(command, report)
        deadline_s = time.monotonic() + LISTEN_TIMEOUT_S
        for port, server in self._servers.items():
            while not _listens(server.pid, port):
                if server.returncode is not None or time.monotonic() > deadline_s:
                    raise TestbedError(f"iperf3 does not serve on port {port}: see traffic/")
                await asyncio.sleep(LOOK_S)

    def begin(self, zero_ns: int) -> None:
        """Make each burst send at its time, counted from `zero_ns`."""
        now_ns = steady_clock()
        self._clients = [asyncio.create_task(self._send(burst, zero_ns, now_ns)) for burst in self._bursts()]

    async def finish(self, *, at_once: bool) -> list[str]:
        """End all generators and return the problems. Idempotent.

        at_once: do not wait for clients and servers that still exchange their results.
        """
        if at_once:
            for client in self._clients:
                client.cancel()
        results = await asyncio.gather(*self._clients, return_exceptions=True)
        self._clients = []
        servers, self._servers = self._servers, {}
        await asyncio.gather(*map(_end, servers.values()))
        wrong = [each for each in results if isinstance(each, Exception)]
        return [f"other people's traffic: {error}" for error in wrong]

    def _bursts(self) -> Iterator[_Burst]:
        for traffic in self._plan.traffic:
            for number, plan in enumerate(traffic.bursts):
                yield _Burst(traffic, number, plan)

    async def _send(self, burst: _Burst, zero_ns: int, now_ns: Callable[[], int]) -> None:
        begin_ns = zero_ns + burst.plan.at_us * 1000
        await asyncio.sleep(max(0.0, (begin_ns - now_ns()) / 1e9))
        traffic = burst.traffic
        command = client_command(
            self._netns(traffic.host), self._addresses[traffic.target], traffic, burst.plan
        )
        client = await _started(command, self._run.traffic_report(traffic.name, burst.number))
        try:
            end_ns = begin_ns + burst.plan.length_s * 10**9
            async with asyncio.timeout(max(0.0, (end_ns - now_ns()) / 1e9) + END_GRACE_S):
                await client.wait()
        except TimeoutError:
            pass  # it writes its report when it is asked to end, and the report shows that it was late
        finally:
            await _end(client)


async def _started(command: list[str], report: Path) -> asyncio.subprocess.Process:
    with report.open("wb") as stream:
        return await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.DEVNULL, stdout=stream, stderr=stream
        )


def _listens(pid: int, port: int) -> bool:
    """Return whether a socket listens on a port in the namespace of a process."""
    try:
        lines = Path(f"/proc/{pid}/net/tcp").read_text().splitlines()
        lines += Path(f"/proc/{pid}/net/tcp6").read_text().splitlines()
    except OSError:
        return False  # it has ended, or there is no IPv6: the caller notices
    sockets = (line.split()[1:4] for line in lines if ":" in line.split()[0])
    return any(local.endswith(f":{port:04X}") and state == LISTENING for local, _, state in sockets)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Ask a process to end, so that it writes its report, and kill it if it does not."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):  # it has just ended
            process.send_signal(number)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(END_TIMEOUT_S):
                await process.wait()
