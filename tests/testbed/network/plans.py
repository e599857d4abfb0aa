"""Small plans made by hand, so that tests of the network do not depend on planning."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from experiments.planned.plan import CapturePlan, HostPlan, LinkPlan, Plan, ProcessPlan, RegionPlan
from testbed.links.selection import kernel_has_netem
from topologies.link_parameters import LinkParameters

LAN = LinkParameters(delay_us=1_000)
WAN = LinkParameters(delay_us=10_000)


def make_plan(
    regions: int = 2,
    hosts: int = 1,
    *,
    wan: LinkParameters = WAN,
    lan: LinkParameters = LAN,
    pairs: Sequence[tuple[int, int]] | None = None,
    parameters_of: dict[tuple[int, int], LinkParameters] | None = None,
) -> Plan:
    """Return regions in a full mesh, or joined by `pairs`, with some hosts each.

    parameters_of: for pairs whose link differs from `wan`.
    """
    pairs = list(combinations(range(regions), 2)) if pairs is None else pairs
    names = [f"r{number}-proxy-{index}" for number in range(regions) for index in range(hosts)]
    wan_links = [
        LinkPlan(
            name=f"r{a}-r{b}",
            kind="wan",
            a=f"r{a}",
            b=f"r{b}",
            forward=(parameters_of or {}).get((a, b), wan),
            backward=(parameters_of or {}).get((a, b), wan),
            a_address=f"10.255.{number // 64}.{number % 64 * 4 + 1}",
            b_address=f"10.255.{number // 64}.{number % 64 * 4 + 2}",
            subnet=f"10.255.{number // 64}.{number % 64 * 4}/30",
        )
        for number, (a, b) in enumerate(pairs)
    ]
    lan_links = [LinkPlan(f"lan-{name}", "lan", name, name.split("-")[0], lan, lan) for name in names]
    return Plan(
        experiment="test",
        system="sprinkler",
        parameters={},
        workload={},
        seed=1,
        duration_us=1_000_000,
        drain_us=0,
        links_kind="relay",
        congestion_control=None,
        snaplen_bytes=None,
        regions=tuple(
            RegionPlan(f"r{number}", f"10.{number}.0.0/16", f"r{number}-gw") for number in range(regions)
        ),
        hosts=tuple(
            host
            for number in range(regions)
            for host in (
                HostPlan(f"r{number}-gw", f"r{number}", "gateway", 0, f"10.{number}.0.1", ""),
                *(
                    HostPlan(
                        f"r{number}-proxy-{index}",
                        f"r{number}",
                        "proxy",
                        index,
                        f"10.{number}.{(index + 2) // 256}.{(index + 2) % 256}",
                        f"lan-r{number}-proxy-{index}",
                    )
                    for index in range(hosts)
                ),
            )
        ),
        links=(*wan_links, *lan_links),
        processes=(),
        captures=tuple(
            [CapturePlan(f"{name}-eth0.pcap", host=name) for name in names]
            + [
                CapturePlan(f"{link.name}@{side}.pcap", link=link.name, side=side)
                for link in wan_links
                for side in (link.a, link.b)
            ]
        ),
        faults=(),
        changes=(),
    )


def one_lan(hosts: int) -> Plan:
    """Return one region's hosts, with a process on each: "r0/proxy-0" on "r0-proxy-0"..."""
    plan = make_plan(1, hosts)
    names = [host.name for host in plan.hosts if host.role == "proxy"]
    return replace(
        plan,
        processes=tuple(
            ProcessPlan(f"r0/proxy-{index}", host, "r0", "proxy", index, index)
            for index, host in enumerate(names)
        ),
    )


def kinds_here() -> list[str]:
    """Return the kinds of link emulator to test here: netem is also tested in user-mode Linux
    (tests/testbed/uml).
    """
    return ["relay", "netem"] if kernel_has_netem() else ["relay"]
