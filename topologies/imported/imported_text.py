"""The text of a topology file that was imported, with its source and all assumptions in comments."""

import json
import re

from topologies.document import FILE_BYTES_MAX, parse_document, validated
from topologies.errors import InputError
from topologies.imported.conversion import US_PER_KM, Assumptions, ImportedLink, ImportedTopology, imported
from topologies.imported.matrix import LAN_DELAY_US
from topologies.imported.network import Edge, Node, shown
from topologies.imported.sources import read_network
from topologies.model import Topology
from topologies.quantities import DURATION, FRACTION, RATE

LAN_RATE_BITS_PER_S = 10**9
LINK_RATE_BITS_PER_S = 10**10
NAME_LENGTH_MAX = 60


def imported_text(topology: ImportedTopology, assumptions: Assumptions, name: str | None) -> str:
    """Return the text of the topology file. name: its name, if not that of the network. Raises InputError."""
    file, origin = topology.network.file, topology.network.origin
    rate = assumptions.rate_bits_per_s
    lines = [
        f"# Imported from {shown(origin)}.",
        f"# Delays, unless the source gives them: {US_PER_KM:g} us per km of a path that is"
        f" {assumptions.path_factor:g} times as long as the great circle"
        + (
            f"; without a distance {DURATION.format(assumptions.delay_us)}."
            if assumptions.delay_us is not None
            else "."
        ),
        f"# Rates, unless the source gives them: {'unlimited' if rate is None else RATE.format(rate)}.",
        *(f"# Left out: {each}." for each in topology.left_out),
        f"name: {json.dumps(topology_name(topology.network.name) if name is None else name)}",
        f"description: {json.dumps(f'Imported from {shown(origin)}.')}",
        "regions:",
        *(_region(region, node) for region, node in topology.regions.items()),
        "links:",
        *(f"  - {_link(link)}" for link in topology.links),
    ]
    text = "\n".join(lines) + "\n"
    if len(text.encode()) > FILE_BYTES_MAX:
        raise InputError(file, None, "", f"would be a topology larger than {FILE_BYTES_MAX >> 10} KiB")
    validated(Topology, parse_document(f"the topology from {file}", text))
    return text


def text_of_source(source: str) -> str:
    """Return the topology file of a network as `cutset topology import` writes it by default."""
    assumptions = Assumptions(rate_bits_per_s=LINK_RATE_BITS_PER_S)
    return imported_text(imported(read_network(source), assumptions), assumptions, None)


def topology_name(written: str) -> str:
    """Return the nearest valid name of a topology."""
    name = re.sub(r"[^a-z0-9_]+", "-", written.lower()).strip("-")
    return (name if name[:1].isalpha() else f"network-{name}".strip("-"))[:NAME_LENGTH_MAX]


def _region(region: str, node: Node) -> str:
    rate = RATE.format(node.rate_bits_per_s or LAN_RATE_BITS_PER_S)
    written = shown(node.name or node.id)
    comment = "" if written == region else f"  # {written}"
    return f"  {region}: {{lan: {{delay: {DURATION.format(LAN_DELAY_US)}, rate: {rate}}}}}{comment}"


def _link(link: ImportedLink) -> str:
    named = "" if link.name is None else f"name: {link.name}, "
    ends = f"{named}between: [{link.ends[0]}, {link.ends[1]}]"
    forward = _direction(link.forward)
    backward = forward if link.backward is None else _direction(link.backward)
    if forward == backward:
        return f"{{{ends}, {forward}}}"
    return f"{{{ends}, forward: {{{forward}}}, backward: {{{backward}}}}}"


def _direction(edge: Edge) -> str:
    fields = [f"delay: {DURATION.format(edge.delay_us or 0)}"]
    fields += [f"jitter: {DURATION.format(edge.jitter_us)}"] if edge.jitter_us else []
    fields += [f"loss: {FRACTION.format(round(edge.loss, 9))}"] if edge.loss else []
    fields += [f"rate: {RATE.format(edge.rate_bits_per_s)}"] if edge.rate_bits_per_s else []
    return ", ".join(fields)
