"""The path of a stream to a region at any time, as a chain of sources: the region that each region's server
receives it from.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analysis.timelines.arrays import Ints
from analysis.timelines.run_metadata import RunMetadata
from topologies.routes import Hop


@dataclass(frozen=True, slots=True)
class SourceHistory:
    """The sources of one stream in one region, sorted by time: the region `names[i]` from `since_ns[i]` on.

    Repetitions are allowed. The time of a lookup is exclusive: a source counts from just after its first
    batch.
    """

    since_ns: Ints
    names: tuple[str, ...]

    def before(self, t_ns: int) -> str | None:
        """Return the source just before `t_ns`; None if there was none yet."""
        found = int(np.searchsorted(self.since_ns, t_ns, side="left")) - 1
        return self.names[found] if found >= 0 else None


def changes(t_ns: Ints, names: npt.NDArray[np.object_]) -> SourceHistory:
    """Return the sources in arrivals sorted by time, without repetitions."""
    if not len(t_ns):
        return SourceHistory(np.zeros(0, np.int64), ())
    new = np.concatenate(([True], names[1:] != names[:-1]))
    return SourceHistory(t_ns[new], tuple(names[new]))


def path_to(
    sources: Mapping[str, SourceHistory], owner: str, region: str, t_ns: int
) -> tuple[Hop, ...] | None:
    """Return the hops of the owner's stream to `region` just before `t_ns`, first hop first.

    Empty for the owner itself; None if the chain of sources does not lead back to the owner.
    """
    hops: list[Hop] = []
    while region != owner:
        source = sources[region].before(t_ns) if region in sources else None
        if source is None or len(hops) > len(sources):
            return None
        hops.append((source, region))
        region = source
    return tuple(reversed(hops))


def change_times(sources: Mapping[str, SourceHistory]) -> Ints:
    """Return every time at which some path of the stream may have changed, sorted."""
    return np.unique(np.concatenate([s.since_ns for s in sources.values()] or [np.zeros(0, np.int64)]))


def length_us(metadata: RunMetadata, hops: tuple[Hop, ...], t_ns: int) -> int:
    """Return the configured delay of a path at `t_ns`, microseconds: its links and the LANs at their ends."""
    lans, none = metadata.lans_us, (0, 0)
    return sum(
        lans.get(sender, none)[0] + metadata.delay_us((sender, taker), t_ns) + lans.get(taker, none)[1]
        for sender, taker in hops
    )
