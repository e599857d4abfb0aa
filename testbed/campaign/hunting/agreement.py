"""Check of a stream after its region lost its memory: losses are excused, but clients must agree.

A region keeps what its clients received. The first region to reach the stream's next epoch fetches the rest
of the old epoch from all regions that it can reach. So if nothing disturbs the path between two regions from
the loss on, except that one is isolated from all others for a while, the clients of one region get the same
events as those of the other, or a placeholder for collected events. Events that a client lacks are
*unshared*.
"""

from collections.abc import Callable, Iterator, Set
from functools import cache
from itertools import product

from analysis.timelines.delivery.outputs import sequence_numbers
from analysis.timelines.run_metadata import RunMetadata, read_metadata
from experiments.hunting.case import ON_LINKS, ON_REGIONS, HuntCase, HuntDisturbance
from experiments.hunting.case_experiment import forgetting_regions
from experiments.model import Experiment
from testbed.backends.in_memory import RunInMemory
from testbed.campaign.hunting.oracle import EXAMPLES_MAX, Violation, affected

UNSHARED = "unshared"


def unshared(run: RunInMemory, case: HuntCase, experiment: Experiment) -> Iterator[Violation]:
    """Yield a violation if clients lack events that others have. experiment: with the case's settings."""
    forgetful = forgetting_regions(experiment, case)
    if not forgetful or run.failure is not None:
        return
    metadata = read_metadata(run.record)
    kept = [
        name
        for name in metadata.clients
        if name not in metadata.disturbed and metadata.hosts[name].region not in forgetful
    ]
    can_ask = _can_ask(case, forgetful, metadata)

    @cache
    def got(host: str, stream: int, *, placeholders: bool) -> Set[int]:
        return sequence_numbers(run.hosts, host, stream, placeholders=placeholders)

    found = []
    for stream in (number for number, owner in metadata.owner.items() if owner in forgetful):
        for name, other in product(kept, repeat=2):
            if can_ask(metadata.hosts[name].region, metadata.hosts[other].region):
                has = got(other, stream, placeholders=False)
                missing = has - got(name, stream, placeholders=True)
                if missing:
                    found.append(affected(name, stream, len(missing), metadata))
    if found:
        found.sort(key=lambda each: -each.count)
        text = f"{found[0].client} lacks {found[0].count} events of stream {found[0].stream} that others have"
        yield Violation(UNSHARED, len(found), text, tuple(found[:EXAMPLES_MAX]))


def _can_ask(case: HuntCase, forgetful: Set[str], metadata: RunMetadata) -> Callable[[str, str], bool]:
    """Return whether a region that enters the next epoch after the loss can reach another region."""
    losses = [
        each.at_us for each in case.disturbances if each.kind in ON_REGIONS and each.target[0] in forgetful
    ]
    later = [each for each in case.disturbances if each.end_us >= min(losses)]

    @cache
    def can_ask(region: str, other: str) -> bool:
        if region == other:
            return False
        hops = {
            frozenset(hop) for pair in ((region, other), (other, region)) for hop in metadata.routes[pair]
        }
        return not any(
            _is_in_between(each, hops, {region, other})
            for each in later
            if (each.kind, each.target) != ("isolate", (region,))
        )

    return can_ask


def _is_in_between(each: HuntDisturbance, hops: Set[frozenset[str]], ends: Set[str]) -> bool:
    if each.kind not in (*ON_LINKS, *ON_REGIONS):
        return not ends.isdisjoint(each.regions)
    if each.kind in {"isolate", *ON_REGIONS}:
        return any(each.regions & hop for hop in hops)
    if each.kind == "partition":
        return any(frozenset(pair) in hops for pair in product(each.target, each.others))
    return frozenset(each.target[:2]) in hops
