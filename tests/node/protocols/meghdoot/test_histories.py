"""Nothing is lost, stray or duplicated, whatever becomes of peers and ways, and zones are a partition."""

import pytest

from tests.node.protocols.can.overlays import wrong
from tests.node.protocols.meghdoot.histories import History


@pytest.mark.parametrize("seed", [4, 39])
@pytest.mark.slow
def test_whatever_happens_events_come_once_to_whom_they_are_for(seed):
    history = History(seed)
    history.happen()
    society = history.society
    lost, stray, repeated, delivered = society.judged()
    assert (lost, stray, repeated) == (0, 0, 0), history.told
    assert delivered > 50
    assert society.silent(), history.told
    assert wrong([node for node in society.nodes().values() if node.can.zones]) == (0, 0, []), history.told
