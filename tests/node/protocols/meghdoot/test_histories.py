"""No event is lost, stray or duplicated through any failures of peers and links, and zones are a
partition.
"""

import pytest

from tests.node.protocols.can.overlays import wrong
from tests.node.protocols.meghdoot.histories import History
from tests.node.protocols.meghdoot.societies import assert_whole


@pytest.mark.parametrize("seed", [4])
@pytest.mark.slow
def test_events_arrive_once_at_their_subscribers_through_any_history(seed):
    history = History(seed)
    history.happen()
    assert_whole(history.society, 50)
    owners = [node for node in history.society.nodes().values() if node.can.zones]
    assert wrong(owners) == (0, 0, []), history.told
