"""A site's manifest, a GENI RSpec of type "manifest", as plain data.

A manifest repeats the request and adds the logins of each node, and the address of each interface. Nodes
without a login (a site's own, for delays) and unknown elements are skipped. The text is untrusted: the parts
that we use are validated, and documents with a DTD are refused, because no manifest needs one and it could
define exponentially expanding entities.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address
from xml.etree import ElementTree

from testbed.machines.emulab.rspec_names import NAMESPACE
from topologies.errors import InputError
from topologies.xml_text import parsed_xml

TEXT_CHARACTERS_MAX = 16 << 20
SSH_PORT = 22


@dataclass(frozen=True, slots=True)
class Login:
    """An SSH login of a node."""

    user: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class AllocatedNode:
    """A node that the site allocated. addresses: of its interfaces, by link."""

    name: str
    logins: tuple[Login, ...]
    addresses: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Manifest:
    """Nodes in the file's order, and the names of all links."""

    file: str
    nodes: tuple[AllocatedNode, ...]
    links: tuple[str, ...]


def read_manifest(text: str, file: str) -> Manifest:
    """Parse a manifest. Raises InputError. file: its name in messages."""
    root = _parsed(text, file)
    links = [link for link in root.iterfind(_tag("link")) if link.get("client_id")]
    link_of = {
        reference.get("client_id", ""): link.get("client_id", "")
        for link in links
        for reference in link.iterfind(_tag("interface_ref"))
    }
    nodes = (_allocated_node(node, link_of, file) for node in root.iterfind(_tag("node")))
    return Manifest(
        file,
        tuple(node for node in nodes if node.logins),
        tuple(link.get("client_id", "") for link in links),
    )


def _parsed(text: str, file: str) -> ElementTree.Element:
    if len(text) > TEXT_CHARACTERS_MAX:
        raise InputError(file, None, "", f"is larger than {TEXT_CHARACTERS_MAX >> 20} MiB, so no manifest")
    root = parsed_xml(text, file)
    if root.tag != _tag("rspec"):
        raise InputError(file, None, "", f"is not an RSpec of version 3 (root element rspec in {NAMESPACE})")
    kind = root.get("type")
    if kind != "manifest":
        raise InputError(
            file, None, "type", f"is {kind}, not manifest: the site shows it when the experiment is ready"
        )
    return root


def _allocated_node(node: ElementTree.Element, link_of: Mapping[str, str], file: str) -> AllocatedNode:
    name = node.get("client_id", "")
    logins = (_login(element, name, file) for element in node.iterfind(f"{_tag('services')}/{_tag('login')}"))
    addresses = {}
    for interface in node.iterfind(_tag("interface")):
        link, ip = link_of.get(interface.get("client_id", "")), interface.find(_tag("ip"))
        if link is not None and ip is not None:
            addresses[link] = _address(ip.get("address", ""), f"{name}.{interface.get('client_id')}", file)
    return AllocatedNode(name, tuple(login for login in logins if login), addresses)


def _login(element: ElementTree.Element, node: str, file: str) -> Login | None:
    user, host = element.get("username"), element.get("hostname")
    if element.get("authentication") != "ssh-keys" or not user or not host:
        return None
    port = element.get("port", str(SSH_PORT))
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 1 << 16):
        raise InputError(file, None, f"{node}.login.port", f"{port!r:.20} is not a port")
    return Login(user, host, int(port))


def _address(text: str, field: str, file: str) -> str:
    try:
        return str(IPv4Address(text))
    except ValueError:
        raise InputError(file, None, field, f"{text!r:.40} is not an IPv4 address") from None


def _tag(name: str) -> str:
    return f"{{{NAMESPACE}}}{name}"
