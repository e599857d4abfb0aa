"""Choice of the children that a node keeps: the papers' extensions of the base mechanism, if switched on.

Growth by load and shrinking (draft of 2001, 3.4), the bottleneck remover and collapse (2002, IV.E and F). See
`layers.Balance` for when each method is called.
"""

from collections.abc import Callable

from node.core import machine as m
from node.core.peers.peer_pool import PeerEffect
from node.protocols.scribe.balancing.bottleneck import BottleneckRemover
from node.protocols.scribe.balancing.collapse import Collapse
from node.protocols.scribe.balancing.growth import Growth
from node.protocols.scribe.balancing.shrink import TreeShrinking
from node.protocols.scribe.balancing.survey import Surveys
from node.protocols.scribe.messages import Join
from node.protocols.scribe.parameters import ScribeParameters
from node.protocols.scribe.topic import Topic
from node.protocols.scribe.tree import TopicTrees


class TreeBalance:
    """The extensions of one node, as its parameters set; requests of other nodes are always processed."""

    def __init__(
        self,
        parameters: ScribeParameters,
        trees: TopicTrees,
        rng: m.Randomness,
        emit: Callable[[PeerEffect], None],
    ) -> None:
        self._grows_by_load = parameters.growth == "by-load"
        self._is_bounded = parameters.entries_max > 0
        self._surveys = Surveys(parameters.probe_timeout_us, trees.pastry, emit)
        self._remover = BottleneckRemover(parameters.entries_max, trees, self._surveys)
        self.growth = Growth(parameters, trees, rng)
        self._collapse = Collapse(trees, is_on=parameters.collapse)
        self._shrinking = TreeShrinking(parameters, trees)

    def passes(self, key: int, join: Join) -> Join | None:
        """See `layers.Balance`."""
        return self.growth.passes(key, join) if self._grows_by_load else None

    def hands_on(self, topic: Topic, join: Join) -> bool:
        """See `layers.Balance`."""
        return self._grows_by_load and self.growth.hands_on(topic, join)

    def adopted(self) -> None:
        """See `layers.Balance`."""
        if self._grows_by_load:
            self.growth.relieve()
        elif self._is_bounded:
            self._remover.relieve()

    def look_after(self, topic: Topic) -> None:
        """See `layers.Balance`."""
        self._collapse.look_after(topic)
        self._shrinking.look_after(topic)

    def timer(self, timer: m.Timer) -> bool:
        """Process a timer; return whether it belongs to a survey."""
        return self._surveys.timer(timer)
