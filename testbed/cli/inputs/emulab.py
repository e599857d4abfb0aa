"""`cutset emulab`: requests to Emulab or CloudLab, and inventories from their manifests."""

import getpass
from pathlib import Path

import click

from testbed.cli.options import FILE, output_option
from testbed.cli.output import write_or_print


@click.group(name="emulab")
def command() -> None:
    """Request the machines of a topology from Emulab or CloudLab, and use them.

    \b
    cutset emulab profile four-regions -o request.xml     a profile for the site's web page
    cutset emulab inventory manifest.xml -o lab.yaml      the manifest that the page then shows
    cutset run link-failure --on lab.yaml
    """


@command.command(name="profile", short_help="Write the request for the machines of TOPOLOGY.")
@click.argument("topology")
@click.option(
    "--shaping",
    type=click.Choice(["hosts", "emulab"]),
    default="hosts",
    show_default=True,
    help="hosts: one network, and the machines emulate links; emulab: a link of the site for each WAN link.",
)
@click.option(
    "--machines-per-region",
    type=click.IntRange(1, 250),
    default=1,
    show_default=True,
    help="Machines over which a region's processes are spread.",
)
@click.option(
    "--regions-per-machine",
    type=click.IntRange(1, 250),
    default=1,
    show_default=True,
    help="Regions, in the topology's order, that share a machine.",
)
@click.option("--hardware-type", help="The site's name of a kind of machine.  [default: any]")
@click.option("--image", help="URN of a disk image.  [default: the site's]")
@click.option("--bare", is_flag=True, help="Install nothing when the machines boot.")
@output_option
def profile(  # noqa: PLR0917 (click passes them by name)
    topology: str,
    shaping: str,
    machines_per_region: int,
    regions_per_machine: int,
    hardware_type: str | None,
    image: str | None,
    bare: bool,
    output: Path | None,
) -> None:
    """Write the request (a GENI RSpec, version 3) for the machines of TOPOLOGY, one for each region.

    TOPOLOGY is a name (see `cutset list`) or a YAML file.
    """
    from testbed.machines.emulab.request import Density, Hardware, limit_warnings, site_request
    from testbed.machines.emulab.rspec import prepare_command, request_rspec
    from testbed.machines.inventory import Shaping
    from topologies.loader import load_topology

    if machines_per_region > 1 and regions_per_machine > 1:
        raise click.UsageError("--machines-per-region and --regions-per-machine exclude each other")
    density = Density(machines_per_region, regions_per_machine)
    request = site_request(load_topology(topology), Shaping(shaping), density)
    for doubt in limit_warnings(request):
        click.echo(f"note: {doubt}", err=True)
    prepare = None if bare else prepare_command()
    write_or_print(output, request_rspec(request, Hardware(hardware_type, image), prepare=prepare))


@command.command(name="inventory", short_help="Write the inventory of the machines in MANIFEST.")
@click.argument("manifest", type=FILE)
@click.option("--name", default="emulab", show_default=True, help="The name of the inventory.")
@click.option("--user", help="The user who logs in.  [default: the only user of the manifest, or you]")
@output_option
def inventory(manifest: Path, name: str, user: str | None, output: Path | None) -> None:
    """Write the inventory of the machines in MANIFEST, for `cutset run --on`."""
    from testbed.machines.emulab.manifest import read_manifest
    from testbed.machines.emulab.to_inventory import inventory_text
    from topologies.document import shown_path
    from topologies.errors import InputError

    try:
        text = manifest.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        problem = error.strerror if isinstance(error, OSError) else "is not UTF-8 text"
        raise InputError(str(manifest), None, "", f"cannot be read: {problem}") from None
    given = read_manifest(text, shown_path(manifest))
    write_or_print(output, inventory_text(given, name=name, user=user, login_name=getpass.getuser()))
