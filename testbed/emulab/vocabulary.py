"""The words of GENI RSpecs, version 3, that requests and manifests share, and our names in them.

A machine that we ask for is called after the regions that it serves (`r0`, or `r0-r1`), a link of the site's
after the wide-area link that it carries (`r0-r1`, too: nodes and links are named apart), and the network that
all machines share is `LAN`. So a manifest alone says which machine is for what. Source: the schemas at the
namespace's address.
"""

NAMESPACE = "http://www.geni.net/resources/rspec/3"
REQUEST_SCHEMA = f"{NAMESPACE}/request.xsd"
INSTANCE = "http://www.w3.org/2001/XMLSchema-instance"

LAN = "cutset-experiment"

NAME_CHARACTERS_MAX = 30  # of a machine: it becomes a label of a host name, next to the experiment's


def machine_name(regions: tuple[str, ...]) -> str:
    """What a machine for these regions is called."""
    return "-".join(regions)


def regions_of(name: str) -> tuple[str, ...]:
    """The regions that a machine of this name is for. The names of regions have no dash."""
    return tuple(name.split("-"))
