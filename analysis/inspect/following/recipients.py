"""Who must get one event, by what publishers and clients wrote down."""

from analysis.inspect.following.copies import Found
from analysis.timelines.deliveries import must_get
from analysis.timelines.facts import Facts
from analysis.timelines.records import read_files
from experiments.declared import Trait
from experiments.rundir import RunDirectory


def clients_of(run: RunDirectory, facts: Facts, found: Found) -> frozenset[str] | None:
    """The clients that must get the event; None where everybody must get everything."""
    published, got = (
        read_files(
            [(name, run.host_deliveries(name)) for name in facts.having(trait)],
            [found.stream],
            clocks=facts.clocks,
        )
        for trait in (Trait.PUBLISHER, Trait.SUBSCRIBER)
    )
    sets = must_get(facts.clients, published, got, facts)
    if sets is None:
        return None
    must, _ = sets[found.stream]
    return frozenset(
        name for name, (first, end) in must.items() if bool(((first <= found.seq) & (found.seq < end)).any())
    )
