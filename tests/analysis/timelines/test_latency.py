"""Latency with events that no client must get."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from analysis.arrays import NEVER, ints
from analysis.timelines import latency, schemas
from analysis.timelines.delivery.stream_pieces import ClientPieces, StreamPieces
from analysis.timelines.recovering import convergence
from analysis.timelines.recovering.delivery_history import DeliveryHistory
from node.core.declaration import Contract
from tests.analysis.timelines.world import MS, ZERO, facts_of

HOSTS = ("r0-client-0", "r1-client-0")
DELAY = 30 * MS
MUST, MAY, UNDELIVERED, LOST = range(4)
"""Each event: the first client must get it, gets it optionally, no client gets it, or it is lost."""
CONTENT = Contract(audience="content", since="subscription", order="none", settle_us=10_000_000)


@pytest.fixture(scope="module")
def metadata():
    calm = facts_of("faults=[]", "expect=[]")
    return replace(calm, declared=replace(calm.declared, contract=CONTENT))


def table_of(events):
    """Return events a second apart as a table of clients by pieces."""
    kinds = np.array(events)
    published_ns = ZERO + 1000 * MS * np.arange(len(events))
    came_ns = np.where((kinds == MUST) | (kinds == MAY), published_ns + DELAY, NEVER)
    none = np.zeros(len(events), bool)
    wanted = np.stack(((kinds == MUST) | (kinds == LOST), none))
    ones, numbers = np.ones(len(events), np.int64), np.arange(1, len(events) + 1)
    arrived_ns = np.stack((came_ns, np.full(len(events), NEVER)))
    return ClientPieces(numbers, ones, published_ns, HOSTS, arrived_ns, wanted, wanted)


def pairs_of(events):
    """Return the same events as pairs of client and piece."""
    whole = table_of(events)
    arrived, wanted = np.flatnonzero(whole.arrived_ns != NEVER), np.flatnonzero(whole.wanted)
    t_ns = whole.arrived_ns.ravel()[arrived]
    return StreamPieces(
        whole.first_seq, whole.count, whole.published_ns, HOSTS, arrived, t_ns, wanted, wanted
    )


def said(cut, metadata):
    collected = latency.samples(0, cut, metadata)
    return latency.notes(collected, latency.untimed(0, cut, metadata, collected.num_rows), metadata)


def test_optional_deliveries_are_not_measured_and_that_is_reported(metadata):
    cut = pairs_of([MAY, MUST, UNDELIVERED, MAY, LOST, MAY])
    assert ints(latency.samples(0, cut, metadata), "latency_ns").tolist() == [DELAY]
    assert latency.untimed(0, cut, metadata, 1).to_pylist() == [{"stream": 0, "count": 3, "samples": 1}]
    assert said(cut, metadata) == [
        "latency: not measured for 3 of 4 events that arrived: they were due to no client that ran from "
        "beginning to end, as their subscriptions were not confirmed before, or ended within 10 s"
    ]


def test_events_due_only_to_a_killed_client_are_not_measured(metadata):
    killed = replace(metadata, disturbed=frozenset({HOSTS[0]}))
    [row] = latency.untimed(0, pairs_of([MUST, LOST]), killed, 0).to_pylist()
    assert row == {"stream": 0, "count": 1, "samples": 0}


def test_complete_measurements_need_no_note(metadata):
    assert said(pairs_of([MUST, UNDELIVERED, LOST]), metadata) == []


def test_without_deliveries_no_latency_is_called_unmeasured(metadata):
    assert said(pairs_of([UNDELIVERED, LOST]), metadata) == [latency.NO_LATENCY]


@pytest.mark.parametrize(
    ("events", "notes"), [([MAY, UNDELIVERED], [convergence.NOTHING_DUE]), ([MAY, MUST], [])]
)
def test_without_due_events_convergence_is_reported_as_unknown(metadata, events, notes):
    assert convergence.notes(convergence.flows(DeliveryHistory(metadata, 0, table_of(events), {}))) == notes


FAULTS = "faults=[{name: cut, at: 3s, cut: [r2, r3]}, {name: restore, at: 6s, restore: [r2, r3]}]"


@pytest.fixture(scope="module")
def collected():
    """Return samples of ten seconds; more than are combined one by one."""
    random = np.random.default_rng(1)
    size = 4 * latency.EXACT_MAX
    columns = {
        "stream": np.zeros(size, np.int32),
        "published_ns": ZERO + random.integers(0, 10_000 * MS, size),
        "latency_ns": np.rint(random.lognormal(np.log(60 * MS), 1, size)).astype(np.int64)
        - random.choice([0, 200 * MS], size, p=[0.99, 0.01]),  # some clocks are wrong
        "count": random.integers(1, 100, size),
    }
    return pa.table(list(columns.values()), schema=schemas.SAMPLES)


@pytest.mark.slow
def test_merging_equal_samples_keeps_the_stated_accuracy(collected):
    metadata = facts_of(FAULTS, "expect=[]")
    few = latency.merge_similar(collected, metadata)
    assert few.num_rows < collected.num_rows / 5
    for name in ("headline", "phases"):
        arguments = (metadata,) if name == "phases" else ()
        figures, exact = (getattr(latency, name)(table, *arguments) for table in (few, collected))
        assert figures == pytest.approx(exact, rel=1 / latency.LIKENESS)
        assert figures.keys() == exact.keys()
        assert len(figures) >= 5
    one, other = (latency.table(table, metadata) for table in (few, collected))
    for name in ("origin", "start_s", "count"):
        assert one.column(name) == other.column(name)
    for name in latency.NAMES[:3]:
        assert one.column(name).to_numpy() == pytest.approx(
            other.column(name).to_numpy(), rel=1 / latency.LIKENESS
        )
    told = latency.notes(few, untimed_of(collected.num_rows), metadata)
    assert told == ["latency: percentiles are accurate to 0.4%, since there are many batches"]


def test_few_samples_stay_as_they_are(collected):
    few = collected.slice(0, latency.EXACT_MAX)
    assert latency.merge_similar(few, facts_of(FAULTS, "expect=[]")) is few


def untimed_of(samples):
    return pa.Table.from_pylist([{"stream": 0, "count": 0, "samples": samples}], schema=schemas.UNTIMED)
