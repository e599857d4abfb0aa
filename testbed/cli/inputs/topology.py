"""`cutset topology`: topology files from measurements."""

from pathlib import Path

import click

from testbed.cli.output import write_or_print


@click.group(name="topology")
def command() -> None:
    """Write topology files from measurements.

    \b
    cutset topology matrix ibm-cloud-2024-08 --regions london,tokyo,dallas -o clouds.yaml
    cutset run link-failure --topology clouds.yaml --set 'faults.cut.cut=[london, tokyo]' \\
        --set 'faults.restore.restore=[london, tokyo]'
    """


@command.command(name="matrix", short_help="Write a topology from round-trip times between regions.")
@click.argument("file")
@click.option("--regions", metavar="A,B,…", help="Only these regions.  [default: all]")
@click.option("--name", help="The name of the topology.  [default: as the file]")
@click.option("--rate", default="10gbit", show_default=True, help="The rate of each link; none: unlimited.")
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file.")
def matrix(file: str, regions: str | None, name: str | None, rate: str, output: Path | None) -> None:
    """Write a topology with a link between any two regions for which FILE has a round-trip time.

    FILE is a CSV, or the name of a bundled one: ibm-cloud-2024-08. It is a matrix with names in its first row
    and column and milliseconds in its cells, or a list with the columns from, to, rtt_ms and, if known,
    jitter_ms and loss_percent. Names become lower case letters and digits: `New York` becomes newyork, and
    the command prints that. A link's delay is half of the round trip, minus the delay of both LANs. Exit
    codes: 0 written, 2 bad input.
    """
    from topologies.document import parse_document, validated
    from topologies.errors import InputError
    from topologies.matrix import matrix_file, read_matrix, topology_text
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
        click.echo(f"renamed, because names are lower case letters and digits: {names}", err=True)
    write_or_print(output, text)
