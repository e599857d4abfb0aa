"""After any failures of nodes and links, zones are a partition again and each node knows its neighbours."""

import pytest

from tests.node.protocols.can.histories import History
from tests.node.protocols.can.test_overlay import assert_settled

LOST_TOUCH = (95, 1125)  # two overlays of the whole space, whose nodes have no neighbour in common
STALE_COPIES = (4, 62)  # a replica that missed an update of its owner, or has no owner
NOWHERE_TO_JOIN = (174, 1153)  # a node that gave way, and knew no neighbour
OTHERS = (0, 1)


@pytest.mark.parametrize("seed", [*LOST_TOUCH, *STALE_COPIES, *NOWHERE_TO_JOIN, *OTHERS])
def test_the_space_is_partitioned_after_any_history(seed):
    history = History(seed)
    history.happen(6)
    assert history.settle(), history.told
    owners = [node for node in history.overlay.nodes if node.can.zones]
    assert_settled(history.overlay, owners, 50)
