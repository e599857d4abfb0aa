"""A node's zones with their versions, when it gains some: as few boxes as can be, none of which overlap."""

from node.protocols.can.claims import Versions
from node.protocols.can.zones import Zone


def united(own: Versions, gained: Versions) -> Versions:
    """What a node has with what it gained. Of volume that it had already, for it may be given what it took
    over, the stronger claim counts, so that no two of its zones overlap.
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


def merged(versions: Versions) -> Versions:
    """The same volume in as few boxes as pairs make, of zones that were taken over as often: what is held in
    trust does not weaken the claim to what is the node's own.
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
