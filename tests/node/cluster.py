"""Small clusters for the nodes' tests: specifications of regions of nodes, and simulated meshes of them."""

import zlib
from collections.abc import Callable, Mapping
from typing import Any

from node.core import machine as m
from node.core.deliveries import RecordKind
from node.core.specification import Member, NodeSpec
from node.sim.sim_network import SimulatedNetwork
from node.sim.wires import Wires
from node.systems import build_machine

S = 1_000_000  # microseconds
TRACE_LIMIT = 5_000_000  # messages
Line = tuple[int, str, Mapping[str, Any]]  # of a log: time, node, fields
MESH = Wires(  # Fig. 8 of the Sprinkler paper, with the checklist's delays
    1_000,
    {
        ("r0", "r1"): 15_000,
        ("r2", "r3"): 15_000,
        ("r0", "r2"): 40_000,
        ("r0", "r3"): 45_000,
        ("r1", "r2"): 35_000,
        ("r1", "r3"): 40_000,
    },
)
COARSE = {"flush_interval_us": 50_000}  # few batches: simulated seconds cost less


def specs(
    *,
    regions: int = 4,
    proxies: int = 1,
    clients: int = 1,
    drivers: int = 1,
    configuration: bool = False,
    streams: int = 1,
    publishers: tuple[tuple[str, ...], ...] = (),
    seed: int = 0,
    rate_per_s: float | Mapping[str, float] = 2000,
    parameters: Mapping[str, Any] = COARSE,
    address: Callable[[str, int], str] = lambda region, at: f"10.{region[1:]}.{at >> 8}.{at & 255}",
    storage: str | None = None,
) -> list[NodeSpec]:
    """Return the specifications of proxies, a driver, clients and perhaps a configuration service in each
    region.

    streams: of each region. publishers: of each stream, if not its own region's drivers. rate_per_s: for all
    or by region. storage: a directory for every process, or None.
    """
    names = [f"r{number}" for number in range(regions)]
    counts = {"proxy": proxies, "driver": drivers, "client": clients, "configuration": int(configuration)}
    roles = [(role, index) for role, count in counts.items() for index in range(count)]
    members = [
        Member(f"{region}/{role}-{index}", f"{region}-{role}-{at}", region, role, index, address(region, at))
        for region in names
        for at, (role, index) in enumerate(roles)
    ]
    return [
        NodeSpec(
            name=member.name,
            host=member.host,
            region=member.region,
            role=member.role,
            index=member.index,
            seed=1000 * seed + number,
            system="sprinkler",
            members=tuple(members),
            address=member.address,
            homes=tuple(region for region in names for _ in range(streams)),
            publishers=publishers,
            parameters=dict(parameters),
            storage=None if storage is None else f"{storage}/{member.host}",
            workload={
                "event_size_bytes": 10,
                "rate_per_s": rate_per_s
                if isinstance(rate_per_s, int | float)
                else rate_per_s[member.region],
                "closed_loop": False,
            },
        )
        for number, member in enumerate(members)
    ]


class Cluster:
    """A started simulated cluster over `MESH`, whose drivers begin at `go_us`."""

    def __init__(
        self,
        *,
        go_us: int = S,
        build: Any = build_machine,
        wires: Wires = MESH,
        uptimes_us: Mapping[str, int] | None = None,
        **given: Any,
    ) -> None:
        self.dark: list[str] = []  # processes of a region without power
        self.network = SimulatedNetwork(
            specs(**given), wires, build=build, trace_limit=TRACE_LIMIT, uptimes_us=uptimes_us
        )
        self.network.run(go_us // 2)
        unready = [name for name, node in self.network.nodes.items() if not node.ready]
        assert not unready, f"not ready: {unready}"
        self.network.broadcast(m.Go(go_us))

    def run(self, until_us: int) -> None:
        """Let time pass."""
        self.network.run(until_us)

    def drain(self, within_us: int = 10 * S) -> None:
        """Stop the drivers, and let data in flight arrive."""
        self.network.broadcast(m.StopDrivers())
        self.network.run(self.network.clock.now_us + within_us)

    def machine(self, name: str) -> Any:
        """Return a node's machine."""
        return self.network.nodes[name].machine

    def logged(self, event: str, from_us: int = 0, until_us: int = 1 << 62) -> list[Line]:
        """Return the lines of all nodes' logs with this event, in order of time."""
        return sorted(
            (
                (time_us, name, line.fields)
                for name, node in self.network.nodes.items()
                for time_us, line in node.logs
                if line.event == event and from_us <= time_us < until_us
            ),
            key=lambda entry: entry[:2],
        )

    def published(self) -> dict[int, int]:
        """Return, by stream, the last sequence number acknowledged to its driver."""
        drivers = [node.machine for node in self.network.nodes.values() if node.spec.role == "driver"]
        loads = [(stream, load) for driver in drivers for stream, load in driver.loads.items()]
        return {
            stream: max(each.publisher.published for s, each in loads if s == stream) for stream, _ in loads
        }

    def delivered(self) -> dict[str, dict[int, int]]:
        """Return the progress of each client in each stream."""
        return {
            name: dict(node.machine.progress().delivered)
            for name, node in self.network.nodes.items()
            if node.spec.role == "client"
        }

    def deliveries(self, client: str, stream: int) -> list[tuple[int, int]]:
        """Return the time and the first number of each batch of a stream that a client got."""
        return [
            (time_us, record.first_seq)
            for time_us, record in self.network.nodes[client].records
            if record.kind == RecordKind.DELIVERED and record.stream == stream
        ]

    def check_deliveries(self) -> None:
        """Check that every client has every published batch once, in order and with its CRC, and nothing
        else.
        """
        records = sorted(
            record
            for name, node in self.network.nodes.items()
            if node.spec.role == "driver"
            for record in self.records(name, RecordKind.PUBLISHED)
        )
        batches = {stream: [key for key in records if key[0] == stream] for stream in self.published()}
        for name, node in self.network.nodes.items():
            if node.spec.role != "client":
                continue
            got = self.records(name, RecordKind.DELIVERED)
            for stream, published in batches.items():
                assert published, f"stream {stream} published nothing: the check would mean nothing"
                assert [key for key in got if key[0] == stream] == published, f"{name}, stream {stream}"

    def records(self, name: str, kind: RecordKind) -> list[tuple[int, int, int, int]]:
        """Return a node's records of a kind: stream, first_seq, count, batch CRC."""
        return [
            (record.stream, record.first_seq, record.count, zlib.crc32(record.payload))
            for _, record in self.network.nodes[name].records
            if record.kind == kind
        ]
