"""Networks that a hunt draws: kind of graph, number of regions, distances, and link impairments. They have
the form of a topology file, so a finding's experiment contains the whole network.

Links are wide enough for what a hunt publishes: a system need not work beyond their rate.
"""

from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

from topologies.loader import load_topology

Network = dict[str, Any]  # content of a topology file

DRAWN = 0.4
"""Probability that a network is drawn instead of taken by name, if the topology is varied."""
LEAST: Mapping[str, int] = {"mesh": 2, "line": 2, "tree": 2, "ring": 3, "star": 3}
"""Kinds with a number of regions, and their least number."""
KINDS = frozenset({*LEAST, "grid", "cliques"})
SHAPES: Mapping[str, str] = {"mesh": "full mesh", "cliques": "chain of meshes"}
FEW, REGIONS_MAX = 3, 6
DELAYS_MS = (1, 4, 15, 40, 60)
SPREADS = (1, 2, 5, 20)
DELAY_MS_MAX = 100
RATES = ("10mbit", "100mbit")
LOSSES = ("0.1%", "0.5%", "1%")


def random_network(rng: Random) -> Network:
    """Draw a network; small ones are more frequent."""
    return _linked(rng, rng.choice((_counted, _counted, _counted, _counted, _grid, _cliques))(rng))


def random_pair(rng: Random) -> Network:
    """Draw a network of two regions."""
    return _linked(rng, {"kind": "mesh", "regions": 2})


def _linked(rng: Random, shape: Network) -> Network:
    least_ms = rng.choice(DELAYS_MS)
    most_ms = min(DELAY_MS_MAX, least_ms * rng.choice(SPREADS))
    delays: Network = {"from": f"{least_ms}ms", "to": f"{most_ms}ms"}
    if rng.random() < 0.3:
        delays["asymmetric"] = True
    drawn = {**shape, "delays": delays, "seed": rng.randrange(1000)}
    link = _link(rng, least_ms) if rng.random() < 0.5 else {}
    return {**drawn, "link": link} if link else drawn


def smaller(given: Network) -> Iterator[Network]:
    """Yield smaller or plainer variants of a network, the smallest first; none for a kind not drawn here."""
    if not _is_drawn_kind(given):
        return
    if _region_count(given) > FEW:
        yield from ({**_drawn_fields(given), "kind": kind, "regions": FEW} for kind in LEAST)
    if "regions" in given:
        yield from ({**given, "regions": fewer} for fewer in range(LEAST[given["kind"]], given["regions"]))
    if "link" in given:
        yield {key: value for key, value in given.items() if key != "link"}
        if len(given["link"]) > 1:
            for each in given["link"]:
                yield {**given, "link": {key: value for key, value in given["link"].items() if key != each}}
    delays = given["delays"]
    if "asymmetric" in delays:
        yield {**given, "delays": {"from": delays["from"], "to": delays["to"]}}
    if delays["from"] != delays["to"]:
        yield {**given, "delays": {**delays, "to": delays["from"]}}


def network_text(topology: str | Network) -> str:
    """Describe a topology in a few words, for a sentence."""
    if isinstance(topology, str):
        return topology
    if not _is_drawn_kind(topology):
        return str(topology.get("name", "of its own"))
    delays, link = topology["delays"], topology.get("link", {})
    far = delays["from"] if delays["from"] == delays["to"] else f"{delays['from']} to {delays['to']}"
    also = "".join(f", {name} {value}" for name, value in link.items())
    shape = SHAPES.get(topology["kind"], topology["kind"])
    return f"a {shape} of {_region_count(topology)} regions, {far} apart{also}"


def _counted(rng: Random) -> Network:
    kind = rng.choice(tuple(LEAST))
    count = min(rng.randint(LEAST[kind], REGIONS_MAX) for _ in range(3))
    return {"kind": kind, "regions": count}


def _grid(rng: Random) -> Network:
    return {"kind": "grid", "rows": 2, "columns": rng.choice((2, 2, 2, 3))}


def _cliques(rng: Random) -> Network:
    size = rng.choice((2, 2, 2, 3))
    return {"kind": "cliques", "cliques": 2, "size": size, "joined_by": rng.choice((1, 2))}


def _is_drawn_kind(given: Network) -> bool:
    """Return whether a network could have been drawn here, so that its fields are known."""
    return given.get("kind") in KINDS and isinstance(given.get("delays"), dict)


def _region_count(given: Network) -> int:
    return len(load_topology(given).regions)


def _drawn_fields(given: Network) -> Network:
    return {key: given[key] for key in ("delays", "seed", "link") if key in given}


def _link(rng: Random, least_ms: int) -> Network:
    """Draw one to three impairments of the links besides delay."""

    possible: Network = {
        "jitter": f"{rng.randint(1, least_ms)}ms",
        "loss": rng.choice(LOSSES),
        "rate": rng.choice(RATES),
    }
    chosen = rng.sample(sorted(possible), rng.randint(1, len(possible)))
    return {name: possible[name] for name in sorted(chosen)}
