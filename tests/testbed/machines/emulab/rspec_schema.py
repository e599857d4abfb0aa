"""The schemas of GENI RSpecs, version 3, for the elements in use: a table, and a check by it.

The table replaces the XSD files: elements of the namespace with their attributes and children, in any order
and number. Elements of other namespaces may be anywhere. In addition to the schemas, their documentation
requires unique identifiers and valid references.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.etree import ElementTree

NAMESPACE = "http://www.geni.net/resources/rspec/3"
BOOLEAN = re.compile("true|false|0|1")
DATE_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?")
TEXT = re.compile(".*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Kind:
    """An element. Attributes by name, with the pattern of their values."""

    required: dict[str, re.Pattern[str]] = field(default_factory=dict)
    optional: dict[str, re.Pattern[str]] = field(default_factory=dict)
    children: tuple[str, ...] = ()


def _text(names: str) -> dict[str, re.Pattern[str]]:
    return dict.fromkeys(names.split(), TEXT)


REQUEST = {
    "rspec": Kind(
        {"type": re.compile("request")},
        {"generated": DATE_TIME, "generated_by": TEXT, "expires": DATE_TIME},
        ("node", "link"),
    ),
    "node": Kind(
        _text("client_id"),
        _text("component_id component_manager_id component_name colocate") | {"exclusive": BOOLEAN},
        ("relation", "location", "services", "interface", "hardware_type", "sliver_type"),
    ),
    "services": Kind(children=("login", "install", "execute")),
    "login": Kind({"authentication": re.compile("ssh-keys|ssh-passwd")}, _text("hostname port username")),
    "install": Kind(_text("url install_path"), _text("file_type")),
    "execute": Kind(_text("shell command")),
    "location": Kind(_text("country"), _text("longitude latitude")),
    "interface": Kind(_text("client_id"), _text("component_id"), ("ip",)),
    "ip": Kind(_text("address"), {"netmask": TEXT, "type": re.compile("ipv4|ipv6")}),
    "hardware_type": Kind(_text("name")),
    "sliver_type": Kind(_text("name"), children=("disk_image",)),
    "disk_image": Kind(_text("name"), _text("os version description url")),
    "link": Kind(
        _text("client_id"),
        children=("property", "link_type", "interface_ref", "component_manager", "component_hop"),
    ),
    "property": Kind(_text("source_id dest_id"), _text("capacity latency packet_loss")),
    "link_type": Kind(_text("name"), _text("class")),
    "interface_ref": Kind(_text("client_id")),
    "component_manager": Kind(_text("name")),
}
MANIFEST = REQUEST | {
    "rspec": Kind(
        {"type": re.compile("manifest")},
        {"generated": DATE_TIME, "generated_by": TEXT, "expires": DATE_TIME},
        ("node", "link"),
    ),
    "node": Kind(
        _text("client_id sliver_id"),
        REQUEST["node"].optional,
        (*REQUEST["node"].children, "host"),
    ),
    "host": Kind(_text("name"), _text("ipv4")),
    "interface": Kind(_text("client_id"), _text("component_id sliver_id mac_address"), ("ip",)),
    "link": Kind(_text("client_id sliver_id"), _text("vlantag"), REQUEST["link"].children),
    "interface_ref": Kind(_text("client_id"), _text("component_id sliver_id")),
}


def breaches(text: str, schema: dict[str, Kind]) -> list[str]:
    """Return the violations of the schema and the dangling references of an RSpec, one line each."""
    root = ElementTree.fromstring(text)
    if root.tag != f"{{{NAMESPACE}}}rspec":
        return [f"the root is {root.tag}"]
    return [*_of_element(root, "rspec", schema), *_of_identifiers(root)]


def _of_element(element: ElementTree.Element, name: str, schema: dict[str, Kind]) -> Iterator[str]:
    kind = schema[name]
    known = kind.required | kind.optional
    own = {key: value for key, value in element.attrib.items() if not key.startswith("{")}
    yield from (f"{name} lacks {key}" for key in kind.required if key not in own)
    for key, value in own.items():
        if key not in known:
            yield f"{name} has an attribute {key}"
        elif not known[key].fullmatch(value):
            yield f"{name} has {key}={value!r}"
    if element.text and element.text.strip():
        yield f"{name} has text"
    for child in element:
        namespace, _, tag = child.tag[1:].rpartition("}")
        if namespace != NAMESPACE:
            continue
        if tag not in kind.children:
            yield f"{name} has a child {tag}"
        elif tag in schema:
            yield from _of_element(child, tag, schema)


def _of_identifiers(root: ElementTree.Element) -> Iterator[str]:
    def ids(path: str, attribute: str = "client_id", of: ElementTree.Element = root) -> list[str]:
        steps = "/".join(f"{{{NAMESPACE}}}{step}" for step in path.split("/"))
        return [element.get(attribute, "") for element in of.iterfind(steps)]

    for path in ("node", "link", "node/interface", "link/interface_ref"):
        found = ids(path)
        yield from (f"{path} {name} stands twice" for name in set(found) if found.count(name) > 1)
    interfaces = set(ids("node/interface"))
    yield from (f"no interface {name}" for name in ids("link/interface_ref") if name not in interfaces)
    for link in root.iterfind(f"{{{NAMESPACE}}}link"):
        ends = set(ids("interface_ref", of=link))
        named = ids("property", "source_id", link) + ids("property", "dest_id", link)
        yield from (f"{name} is not on link {link.get('client_id')}" for name in named if name not in ends)
