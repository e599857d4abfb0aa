"""The next hop of a message while some of the closer nodes are being probed."""

from node.protocols.pastry.ids import distance
from node.protocols.pastry.known_nodes import KnownNodes
from node.protocols.pastry.messages import RoutePhase
from node.protocols.pastry.parameters import PastryParameters
from node.protocols.reachability.nodes import NodeHandle

STEP = 1 << 124
KEY = 3 * STEP


def known(suspects):
    """Return the knowledge of node 8 of a ring of 16: only its neighbours 7 and 9, so key 3 is beyond its
    leaf set.
    """
    handles = {place: NodeHandle(place * STEP, place) for place in range(16)}
    nodes = KnownNodes(handles[8], PastryParameters(leaf_set=2), lambda node: node.address in suspects)
    for place in (7, 9):
        nodes.leaf_set.add(handles[place])
    for place in (6, 5):
        nodes.measured(handles[place], 1_000)
    assert not nodes.leaf_set.covers(KEY)
    return nodes


def test_answering_nodes_are_preferred_but_probed_ones_stay_closer():
    following, _ = known(suspects={5}).following(KEY, RoutePhase.PREFIX)
    assert following.address == 6
    nodes = known(suspects={5, 6, 7, 9})
    following, phase = nodes.following(KEY, RoutePhase.PREFIX)
    assert (following.address, phase) == (5, RoutePhase.PREFIX)
    assert distance(following.id, KEY) < distance(nodes.own.id, KEY)
