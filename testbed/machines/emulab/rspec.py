"""A request as a GENI RSpec, version 3: the XML that Emulab and CloudLab accept as a profile.

It uses only elements of the core schema, so that every site of the family can read it. A link has its
properties once for each direction: capacity in kbit/s, latency in ms, packet loss as a fraction. Sources: the
schemas (`rspec_names.py`), and for the units the documentation of geni-lib and of GENI's developers.
"""

import shlex
from decimal import Decimal
from xml.etree import ElementTree

from testbed.doctor import packages
from testbed.machines.emulab.request import Hardware, SiteLink, SitePort, SiteRequest
from testbed.machines.emulab.rspec_names import INSTANCE, LAN_PREFIX, NAMESPACE, REQUEST_SCHEMA
from topologies.link_parameters import LinkParameters

SLIVER = "raw-pc"  # a whole machine, whose clock and processors are not shared


def request_rspec(request: SiteRequest, hardware: Hardware, *, prepare: str | None) -> str:
    """Return the RSpec's text. prepare: a shell command that every machine runs after booting, or None."""
    root = ElementTree.Element(
        "rspec",
        {
            "xmlns": NAMESPACE,
            "xmlns:xsi": INSTANCE,
            "xsi:schemaLocation": f"{NAMESPACE} {REQUEST_SCHEMA}",
            "type": "request",
            "generated_by": "cutset",
        },
    )
    for machine in request.machines:
        _add_node(root, machine, request.ports_of(machine), hardware, prepare)
    for link in request.links:
        _add_link(root, link)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _add_node(
    root: ElementTree.Element, name: str, ports: tuple[SitePort, ...], hardware: Hardware, prepare: str | None
) -> None:
    node = ElementTree.SubElement(root, "node", {"client_id": name, "exclusive": "true"})
    sliver = ElementTree.SubElement(node, "sliver_type", {"name": SLIVER})
    if hardware.image:
        ElementTree.SubElement(sliver, "disk_image", {"name": hardware.image})
    if hardware.type:
        ElementTree.SubElement(node, "hardware_type", {"name": hardware.type})
    if prepare:
        services = ElementTree.SubElement(node, "services")
        ElementTree.SubElement(services, "execute", {"shell": "sh", "command": prepare})
    for port in ports:
        interface = ElementTree.SubElement(node, "interface", {"client_id": port.name})
        address = {"address": port.address, "netmask": port.netmask, "type": "ipv4"}
        ElementTree.SubElement(interface, "ip", address)


def _add_link(root: ElementTree.Element, link: SiteLink) -> None:
    element = ElementTree.SubElement(root, "link", {"client_id": link.name})
    for port in link.ports:
        ElementTree.SubElement(element, "interface_ref", {"client_id": port.name})
    for source, target, parameters in link.parameters:
        ends = {"source_id": source.name, "dest_id": target.name}
        ElementTree.SubElement(element, "property", ends | _properties(parameters))
    if link.name.startswith(LAN_PREFIX):
        ElementTree.SubElement(element, "link_type", {"name": "lan"})


def _properties(parameters: LinkParameters) -> dict[str, str]:
    """Return capacity in kbit/s (rounded up), latency in ms, packet_loss from 0 to 1, if configured."""
    properties = {}
    if parameters.rate_bits_per_s is not None:
        properties["capacity"] = str(-(-parameters.rate_bits_per_s // 1000))
    if parameters.delay_us:
        properties["latency"] = _plain(Decimal(parameters.delay_us) / 1000)
    if parameters.loss:
        properties["packet_loss"] = _plain(Decimal(repr(parameters.loss)))
    return properties


def _plain(number: Decimal) -> str:
    """Return the number without an exponent."""
    return f"{number.normalize():f}"


MACHINE = "machine"


def prepare_command() -> str:
    """Return a command for sh(1) that installs the packages of packages.txt for machines (Debian, Ubuntu)."""
    names = shlex.join(package.name for package in packages() if package.job == MACHINE)
    return (
        "sudo apt-get update && sudo env DEBIAN_FRONTEND=noninteractive"
        f" apt-get install -y --no-install-recommends {names}"
    )
