"""Makes other people's traffic with iperf3: a server for each burst from before time 0, a client at its time.

All run in their hosts' namespaces and die with the sandbox. A burst has a server, a port and connections of
its own: one that a cut kept from its end is in nobody's way. A client first agrees with its server over a
control connection, so bytes begin some round trips after their time. What both sides reported is kept as
iperf3's JSON in the run directory; what it says, and that a client could not connect, is the analysis' matter
(`analysis.timelines.links.traffic`).
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
"""What a generator is started by: it sends and receives as anybody may."""
LISTEN_TIMEOUT_S = 30.0
LOOK_S = 0.02
END_GRACE_S = 10.0
"""After its time a client and its server tell each other what came: some round trips, through full queues."""
END_TIMEOUT_S = 5.0
"""For one that was told to end."""
BLOCKS_PER_S = 100
BLOCK_BYTES_MIN, BLOCK_BYTES_MAX = 1_000, 128_000
"""What TCP at a rate writes at once: iperf3's own 128 KiB would be a second of a narrow link."""
INTERVALS, INTERVAL_S_MAX = 600, 60
"""Of which a report tells, about; and the longest that iperf3 knows."""
LISTENING = "0A"
"""The state in /proc/net/tcp (proc_pid_net(5))."""


def check_generator(plan: Plan) -> None:
    """Raises MachineError, with how to get it, if the plan has traffic and nothing here makes it."""
    if plan.traffic and list(missing([GENERATOR], search_path(os.environ))):
        said = f"`{GENERATOR.name}` ({GENERATOR.get})"
        raise MachineError(f"other people's traffic needs what is not installed: {said}")


def generator_versions(plan: Plan) -> dict[str, str | None]:
    """The version of what makes the plan's traffic, by name; nothing where there is no traffic."""
    return {GENERATOR.name: version_of(GENERATOR, search_path(os.environ))} if plan.traffic else {}


def server_command(netns: str, burst: BurstPlan) -> list[str]:
    """The argument list of the receiver of a burst, which serves one client."""
    return [*_enter(netns), "iperf3", "--server", "--one-off", "--json", "--port", str(burst.port)]


def client_command(netns: str, address: str, traffic: TrafficPlan, burst: BurstPlan) -> list[str]:
    """The argument list of the sender of a burst."""
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
        """Let each burst send at its time, counted from `zero_ns`."""
        now_ns = steady_clock()
        self._clients = [asyncio.create_task(self._send(burst, zero_ns, now_ns)) for burst in self._bursts()]

    async def finish(self, *, at_once: bool) -> list[str]:
        """End everything, and return what went wrong; idempotent.

        at_once: do not wait for those that still tell each other what came.
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
            pass  # its report, which it writes when it is told to end, says so
        finally:
            await _end(client)


async def _started(command: list[str], report: Path) -> asyncio.subprocess.Process:
    with report.open("wb") as stream:
        return await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.DEVNULL, stdout=stream, stderr=stream
        )


def _listens(pid: int, port: int) -> bool:
    """Whether anybody listens on a port, in the namespace of a process."""
    try:
        lines = Path(f"/proc/{pid}/net/tcp").read_text().splitlines()
        lines += Path(f"/proc/{pid}/net/tcp6").read_text().splitlines()
    except OSError:
        return False  # it has ended, or there is no IPv6: then the next look tells
    sockets = (line.split()[1:4] for line in lines if ":" in line.split()[0])
    return any(local.endswith(f":{port:04X}") and state == LISTENING for local, _, state in sockets)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Ask it to end, so that it writes its report, and kill it if it does not."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):  # it has just ended
            process.send_signal(number)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(END_TIMEOUT_S):
                await process.wait()
