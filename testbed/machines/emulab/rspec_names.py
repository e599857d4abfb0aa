"""The names of GENI RSpecs, version 3, that requests and manifests share, and our names in them.

A requested machine is named after the regions that it serves (`r0`, `r0-r1`), with a number at the end if it
shares its region with others (`r0-1`); a hyphen in a region's name is doubled. A link of the site is named
after the wide-area link that it carries (`r0-r1`: nodes and links have separate name spaces), the network
that all machines share is `LAN`, and one between the machines of a region `cutset-r0`. A manifest alone
therefore identifies the purpose of each.
Source: the schemas at the namespace's address.
"""

import re

NAMESPACE = "http://www.geni.net/resources/rspec/3"
REQUEST_SCHEMA = f"{NAMESPACE}/request.xsd"
INSTANCE = "http://www.w3.org/2001/XMLSchema-instance"

LAN = "cutset-experiment"
LAN_PREFIX = "cutset-"

NAME_CHARACTERS_MAX = 30  # of a machine's name, a label of a host name next to the experiment's


def machine_names(regions: tuple[str, ...], count: int) -> tuple[str, ...]:
    """Return the names of `count` machines that serve these regions."""
    name = "-".join(region.replace("-", "--") for region in regions)
    return (name,) if count == 1 else tuple(f"{name}-{number}" for number in range(1, count + 1))


def regions_of(machine: str) -> tuple[str, ...]:
    """Return the regions that a machine serves, from its name: names of regions begin with a letter."""
    parts = re.split("(?<!-)-(?!-)", machine)
    return tuple(part.replace("--", "-") for part in parts if not part.isdigit())


def region_lan(region: str) -> str:
    """Return the name of the network between the machines of a region."""
    return f"{LAN_PREFIX}{region}"
