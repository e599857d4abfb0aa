"""The path of a stream to a region at any time: the region from whose server each region's server receives
it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analysis.timelines.arrays import Ints
from analysis.timelines.run_metadata import RunMetadata
from topologies.routes import Hop


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources of one stream in one region: the region `names[i]` from `since_ns[i]` on, in order of time.

    Repetitions are allowed. `last_ns` in a lookup is exclusive: a source counts from just after its first
    batch.
    """

    since_ns: Ints
    names: tuple[str, ...]

    def before(self, t_ns: int) -> str | None:
        """The source just before `t_ns`; None if there was none yet."""
        found = int(np.searchsorted(self.since_ns, t_ns, side="left")) - 1
        return self.names[found] if found >= 0 else None


def changes(t_ns: Ints, names: npt.NDArray[np.object_]) -> Sources:
    """Sources from arrivals in order of time, repetitions left out."""
    if not len(t_ns):
        return Sources(np.zeros(0, np.int64), ())
    new = np.concatenate(([True], names[1:] != names[:-1]))
    return Sources(t_ns[new], tuple(names[new]))


def path_to(sources: Mapping[str, Sources], owner: str, region: str, t_ns: int) -> tuple[Hop, ...] | None:
    """The hops by which the owner's stream came to `region` just before `t_ns`, first hop first.

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


def change_times(sources: Mapping[str, Sources]) -> Ints:
    """Every time at which some path of the stream may have changed, in order."""
    return np.unique(np.concatenate([s.since_ns for s in sources.values()] or [np.zeros(0, np.int64)]))


def length_us(metadata: RunMetadata, hops: tuple[Hop, ...], t_ns: int) -> int:
    """What a path takes as configured at `t_ns`, microseconds: its links and the LANs at their ends."""
    lans, none = metadata.lans_us, (0, 0)
    return sum(
        lans.get(sender, none)[0] + metadata.delay_us((sender, taker), t_ns) + lans.get(taker, none)[1]
        for sender, taker in hops
    )
