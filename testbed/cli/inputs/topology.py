"""`cutset topology`: topology files from measurements, and from networks in the formats of others."""

from pathlib import Path

import click

from testbed.cli.options import FiniteRange, QuantityParameter, output_option
from testbed.cli.output import write_or_print
from topologies.quantities import DURATION, RATE


@click.group(name="topology")
def command() -> None:
    """Write topology files from measurements, and from networks in other formats.

    \b
    cutset topology import topohub:topozoo/Geant2012 -o geant.yaml
    cutset topology matrix ibm-cloud-2024-08 --regions london,tokyo,dallas -o clouds.yaml
    cutset run link-failure --topology clouds.yaml --set 'faults.cut.cut=[london, tokyo]' \\
        --set 'faults.restore.restore=[london, tokyo]'
    """


@command.command(name="matrix", short_help="Write a topology from round-trip times between regions.")
@click.argument("file")
@click.option("--regions", metavar="A,B,…", help="Only these regions.  [default: all]")
@click.option("--name", help="The name of the topology.  [default: as the file]")
@click.option("--rate", default="10gbit", show_default=True, help="The rate of each link; none: unlimited.")
@output_option
def matrix(file: str, regions: str | None, name: str | None, rate: str, output: Path | None) -> None:
    """Write a topology with a link between any two regions for which FILE has a round-trip time.

    FILE is a CSV, or the name of a bundled one: ibm-cloud-2024-08. It is a matrix with names in its first row
    and column and milliseconds in its cells, or a list with the columns from, to, rtt_ms and, if known,
    jitter_ms and loss_percent. Other characters of names than letters and digits become hyphens: `New York`
    becomes New-York, and the command prints that. A link's delay is half of the round trip, minus the delay
    of both LANs. Exit codes: 0 written, 2 bad input.
    """
    from topologies.document import parse_document, validated
    from topologies.errors import InputError
    from topologies.imported.matrix import matrix_file, read_matrix, topology_text
    from topologies.model import Topology

    path = matrix_file(file)
    found = read_matrix(path)
    if regions is not None:
        try:
            found = found.restricted_to([each.strip() for each in regions.split(",")])
        except ValueError as error:
            raise InputError("--regions", None, "", str(error)) from None
    described = f"Round-trip times between regions, from {path.name}."
    text = topology_text(found, name or path.stem.lower(), described, "" if rate == "none" else rate)
    validated(Topology, parse_document(f"the topology from {path}", text))
    if found.renamed:
        names = ", ".join(f"{name} is {region}" for name, region in found.renamed.items())
        click.echo(f"renamed, because names are letters, digits and hyphens: {names}", err=True)
    write_or_print(output, text)


@command.command(name="import", short_help="Write a topology from a network in another format.")
@click.argument("source")
@click.option("--name", help="The name of the topology.  [default: the network's]")
@click.option(
    "--path-factor",
    type=FiniteRange(1, 10),
    default=1.5,
    show_default=True,
    help="How much longer than the great circle the path of a link is.",
)
@click.option(
    "--delay",
    type=QuantityParameter("TEXT", DURATION, DURATION.example),
    help="One-way delay of links without a delay or distance.  [default: left out]",
)
@click.option(
    "--rate",
    type=QuantityParameter("TEXT", RATE, RATE.example, none=True),
    default="10gbit",
    show_default=True,
    help="The rate of links without one; none: unlimited.",
)
@output_option
def import_(
    source: str,
    *,
    name: str | None,
    path_factor: float,
    delay: int | None,
    rate: int | None,
    output: Path | None,
) -> None:
    """Write a topology from a network in another format.

    SOURCE is a network of TopoHub by its name, such as topohub:sndlib/germany50, or a file: .json (TopoHub),
    .gml (Internet Topology Zoo, Shadow), .graphml, .xml (SNDlib, GraphML), .clab.yml (containerlab).

    A link has the delay that the source gives, or 5 us per km of its path, or that of --delay. The command
    prints what it leaves out, and the file has that, the source with its version, and the source's names as
    comments. Exit codes: 0 written, 2 bad input.
    """
    from topologies.imported.conversion import Assumptions, imported
    from topologies.imported.imported_text import imported_text
    from topologies.imported.sources import read_network

    assumptions = Assumptions(path_factor, delay, rate)
    topology = imported(read_network(source), assumptions)
    text = imported_text(topology, assumptions, name)
    for line in topology.left_out:
        click.echo(f"left out: {line}", err=True)
    write_or_print(output, text)
