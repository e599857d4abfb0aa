"""Which links a network can lose and stay connected. A link counts only if it is up in both directions."""

from collections.abc import Iterable, Sequence

from experiments.faults import Cut, Fault, Isolate, Outage, Partition
from topologies.model import Topology
from topologies.routes import connected

Ends = tuple[str, str]


class LosableLinks:
    """The links that are left, and which of them may go, too."""

    def __init__(self, topology: Topology, others: Sequence[Fault] = ()) -> None:
        """others: faults that are there anyway; what they cut for good is lost already."""
        lost = _lost_for_good(others, topology)
        self._regions = tuple(topology.regions)
        self.left: list[Ends] = [link.between for link in topology.links if link.name not in lost]

    @property
    def connected(self) -> bool:
        """Whether the links that are left connect all regions."""
        return connected(self._regions, self.left)

    @property
    def losable(self) -> list[Ends]:
        """The links of which any one may be lost."""
        return [link for link in self.left if connected(self._regions, self._without(link))]

    @property
    def count_max(self) -> int:
        """How many can be lost together: what a spanning tree does not need."""
        return len(self.left) - (len(self._regions) - 1)

    def lose(self, link: Ends) -> None:
        """Count a link as lost."""
        self.left.remove(link)

    def _without(self, link: Ends) -> Iterable[Ends]:
        return (other for other in self.left if other != link)


def _lost_for_good(faults: Sequence[Fault], topology: Topology) -> set[str]:
    """The links that these keep down until the end, restores left out of account."""
    lost = set()
    for fault in faults:
        if not isinstance(fault, Outage) or fault.for_us is not None:
            continue
        if isinstance(fault, Cut) and (link := topology.link_between(fault.link)):
            lost.add(link.name)
        elif isinstance(fault, Isolate):
            others = [region for region in topology.regions if region != fault.region]
            lost.update(link.name for link, _ in topology.cut_set([[fault.region], others]))
        elif isinstance(fault, Partition):
            lost.update(link.name for link, _ in topology.cut_set(fault.groups))
    return lost
