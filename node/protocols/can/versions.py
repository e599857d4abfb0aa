"""Union of a node's zones and their versions when it gains zones: few boxes, without overlap."""

from node.protocols.can.claims import Versions
from node.protocols.can.zones import Zone


def united_versions(own: Versions, gained: Versions) -> Versions:
    """Return the node's own zones together with the gained ones.

    If both contain the same volume (a node may be given what it took over), the stronger claim counts, so
    that no two of its zones overlap.
    """
    zones = dict(own)
    for zone, version in gained.items():
        rest = [zone]
        for mine, own_version in list(zones.items()):
            if own_version <= version:
                rest = [part for each in rest for part in each.without(mine)]
            elif mine.intersects(zone):
                del zones[mine]
                zones |= dict.fromkeys(mine.without(zone), own_version)
        zones |= dict.fromkeys(rest, version)
    return zones


def merged_versions(versions: Versions) -> Versions:
    """Return the same volume in fewer boxes by merging pairs of zones with the same version.

    Zones with different versions stay apart: volume that the node holds provisionally must not weaken the
    claim to its own zones.
    """
    zones = dict(versions)
    pair = _pair(zones)
    while pair is not None:
        first, second, both = pair
        zones[both] = zones.pop(first)
        del zones[second]
        pair = _pair(zones)
    return zones


def _pair(versions: Versions) -> tuple[Zone, Zone, Zone] | None:
    listed = list(versions)
    for number, first in enumerate(listed):
        for second in listed[:number]:
            both = first.merged(second) if versions[first] == versions[second] else None
            if both is not None:
                return first, second, both
    return None
