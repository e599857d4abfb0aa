"""The path of a stream to a region at any time, as a chain of sources: the region that each region's server
receives it from.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from analysis.arrays import Ints, begins, codes, ints, rows
from analysis.timelines.run_metadata import RunMetadata
from experiments.declared import Trait
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
    new = begins(names)
    return SourceHistory(t_ns[new], tuple(names[new]))


def sources(events: pa.Table, metadata: RunMetadata) -> dict[str, SourceHistory]:
    """Return each region's sources of the stream, from batches that arrived at its proxies from other
    regions.
    """
    proxies = [metadata.hosts[name] for name in metadata.having(Trait.SERVER)]
    arrived = rows(events, kind="arrived", role=metadata.declared.having(Trait.SERVER))
    names = [host.name for host in proxies]
    regions = np.array([*(host.region for host in proxies), ""], object)  # the last entry is for other hosts
    here, there = (regions[codes(arrived.column(column), names)] for column in ("host", "peer"))
    t_ns = ints(arrived, "t_ns")
    found: dict[str, SourceHistory] = {}
    for region in dict.fromkeys(host.region for host in proxies):
        mine = np.flatnonzero((here == region) & (there != region) & (there != ""))
        order = mine[np.argsort(t_ns[mine], kind="stable")]
        found[region] = changes(t_ns[order], there[order])
    return found


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
