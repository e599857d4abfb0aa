"""Who is who in a run: which proxy owns which stream, who dials whom. Computed from a node's specification.

Proxies are few and static (paper 3.2). A stream belongs to a region; its owner is the region's first proxy.
"""

from node.core.dialing import Target
from node.core.specification import Member, NodeSpec
from node.protocols.sprinkler.parameters import Parameters


def proxies(spec: NodeSpec) -> list[Member]:
    """All proxies of the run, by name."""
    return sorted((member for member in spec.members if member.role == "proxy"), key=lambda proxy: proxy.name)


def owners(spec: NodeSpec) -> dict[int, str]:
    """By stream, its owner: the proxy of its region whose name sorts first."""
    first: dict[str, str] = {}
    for proxy in proxies(spec):
        first.setdefault(proxy.region, proxy.name)
    return {stream: first[region] for region, stream in spec.streams.items() if region in first}


def peers_to_dial(spec: NodeSpec, parameters: Parameters) -> list[Target]:
    """Of any two proxies, the one whose name sorts first dials."""
    later = [proxy for proxy in proxies(spec) if proxy.name > spec.name]
    return [Target(proxy.name, proxy.address, parameters.port) for proxy in later]


def served(spec: NodeSpec) -> list[Member]:
    """The drivers and clients of a proxy's region."""
    return [
        member
        for member in spec.members
        if member.region == spec.region and member.role in {"driver", "client"}
    ]


def own_proxy(spec: NodeSpec, parameters: Parameters, position: int = 0) -> Target:
    """The proxy of a node's region; of several, the one at `position`, counted round. Raises ValueError."""
    found = [proxy for proxy in proxies(spec) if proxy.region == spec.region]
    if not found:
        raise ValueError(f"{spec.name}: region {spec.region} has no proxy")
    proxy = found[position % len(found)]
    return Target(proxy.name, proxy.address, parameters.port)
