"""Whatever a contract promises is judged: planted defects under each combination of what it may say.

A defect is simulated once; its records are then held against every contract. The table says which promises a
defect breaks; under all others it is allowed, and no system breaks any promise without a defect.
"""

from dataclasses import replace
from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest

from analysis.timelines import verification
from analysis.timelines.delivery import total_order
from analysis.timelines.delivery.content import ContentFiles
from analysis.timelines.delivery.deliveries import delivery_table
from analysis.timelines.delivery.delivery_records import read_files
from analysis.timelines.run_metadata import read_metadata
from experiments.contract import breaches
from experiments.declared import Trait
from experiments.loader import load_experiment
from node.core.declaration import CHOICES, Contract
from node.core.deliveries import RecordKind
from node.systems import build_machine
from tests.virtual_runs import simulated

pytestmark = pytest.mark.slow

BROKERS, PEERS, EXCHANGE = "brokers.yaml", "peers.yaml", "exchange.yaml"
CUT = "faults=[{name: cut, at: 2s, cut: [r0, r1], for: 1s}]"
NO_FAULT = ("faults=[]", "duration=5s")
LOSSLESS, NO_REPEATS = ("exactly-once", "at-least-once"), ("exactly-once", "at-most-once")


def nth_delivery(change, number=20):
    """Return a change of that delivery of a machine: `change` gets the original function and the message."""

    def changed(machine):
        usual, count = machine.deliver, 0

        def deliver(message):
            nonlocal count
            count += 1
            (change if count == number else lambda way, given: way(given))(usual, message)

        machine.deliver = deliver

    return changed


def repeats(usual, told):
    usual(told)
    usual(told)


def invents(usual, told):
    """Deliver the message, and events with numbers that were never published."""
    usual(told)
    usual(replace(told, first_seq=told.first_seq + 1_000_000))


def garbles(usual, told):
    usual(replace(told, payload=bytes(told.payload)[::-1]))


def records_twice(peer):
    usual = peer.record
    peer.record = lambda kind, *given: [
        usual(kind, *given) for _ in range(1 + (kind == RecordKind.PUBLISHED))
    ]


def late(machine):
    """Deliver an event only after the next one of its stream."""
    usual, held = machine.deliver, []

    def deliver(message):
        if not held and message.first_seq > 20:
            held.append(message)
        elif len(held) == 1 and message.stream == held[0].stream:
            usual(message)
            usual(held[0])
            held.append(None)
        else:
            usual(message)

    machine.deliver = deliver


def tells_a_stranger(broker):
    """Forward one event after 3 s to a client that does not follow its topic."""
    usual, told, asked_us = broker.pass_on, [], []

    def pass_on(message, *, from_broker):
        usual(message, from_broker=from_broker)
        asked_us.append(broker.now_us)
        following = broker.followers.get(message.topic, set())
        strangers = sorted(set().union(*broker.followers.values()) - following)
        if broker.now_us - asked_us[0] > 3_000_000 and strangers and not told:
            told.append(strangers[0])
            usual_followers, broker.followers = broker.followers, {message.topic: {strangers[0]}}
            usual(message, from_broker=True)
            broker.followers = usual_followers

    broker.pass_on = pass_on


def subscribes_to_all(machine):
    """Record a subscription to all streams before the first event."""
    usual = machine.begin

    def begin():
        usual()
        for stream in range(len(machine.spec.homes)):
            machine.record(RecordKind.SUBSCRIBED, stream, 1)

    machine.begin = begin


def nothing(machine):
    pass


@pytest.fixture(scope="module")
def runs():
    """Return a cache of runs that several tests use, by defect."""
    return {}


@pytest.fixture
def records_of(tmp_path_factory):
    """Return a function that runs machines of this build and gives their records and metadata."""

    def run(file, build, *settings):
        experiment = load_experiment(str(Path(__file__).with_name(file)), settings)
        directory = simulated(experiment, tmp_path_factory.mktemp("run"), build=build)
        metadata = read_metadata(directory.read_run())

        def files(*traits):
            return [(name, directory.host_deliveries(name)) for name in metadata.having(*traits)]

        content = ContentFiles.from_run(directory, metadata, metadata.clients)
        return (
            metadata,
            files(Trait.PUBLISHER),
            read_files(files(Trait.PUBLISHER)),
            read_files(files(Trait.SUBSCRIBER)),
            content.read(metadata.clocks) if content else None,
        )

    return run


def told(run, contract):
    """Return the figures that violate the contract."""
    metadata, publishers, published, got, content = run
    metadata = replace(metadata, declared=replace(metadata.declared, contract=contract))
    found = delivery_table(metadata.clients, published, got, metadata, content=content)
    if contract.order == "total":
        found = total_order.with_disorder(found, total_order.disorder(got, metadata))
    orders = pa.concat_tables(
        [verification.check_order(name, read_files([(name, path)])) for name, path in publishers]
    )
    figures = {f"events.{name}": sum(found.column(name).to_pylist()) for name in found.column_names[2:-4]}
    figures["events.unordered_publishers"] = sum(orders.column("unordered").to_pylist())
    return {path for path in breaches(contract) if figures.get(path)}


def contracts(of, file):
    """Every contract like this one in who gets what, and in what is published; survives: any fault or none.
    Only the exchange passes all events on in one order.
    """
    orders = [order for order in CHOICES["order"] if order != "total" or file == EXCHANGE]
    for order, delivery, survives in product(orders, CHOICES["delivery"], (None, ())):
        yield replace(of, order=order, delivery=delivery, survives=survives)


always, no_losses, once_at_most, in_order = (
    lambda contract: True,
    lambda contract: contract.delivery in LOSSLESS,
    lambda contract: contract.delivery in NO_REPEATS,
    lambda contract: contract.order != "none",
)
SENT = Contract("sent", "all", "beginning", settle_us=500_000)
ACKNOWLEDGED = replace(SENT, published="acknowledged")
BOTH = replace(SENT, published="sent-then-acknowledged")
SINCE = replace(SENT, since="subscription")
TOPIC = Contract("sent", "topic", "subscription", settle_us=1_500_000)
CONTENT = Contract("sent", "content", "subscription", settle_us=1_000_000)


@pytest.mark.parametrize(
    ("file", "role", "change", "of", "figure", "breaks"),
    [
        *((PEERS, "peer", nothing, of, "", always) for of in (SENT, ACKNOWLEDGED, BOTH)),
        (BROKERS, "subscriber", nothing, TOPIC, "", always),
        (EXCHANGE, "subscriber", nothing, CONTENT, "", always),
        *(
            (PEERS, "peer", nth_delivery(lambda *_: None), of, "lost", no_losses)
            for of in (SENT, ACKNOWLEDGED, BOTH, SINCE)
        ),
        *(
            (
                PEERS,
                "peer",
                nth_delivery(repeats),
                of,
                "duplicated",
                once_at_most,
            )
            for of in (SENT, SINCE)
        ),
        *((PEERS, "peer", late, of, "out_of_order", in_order) for of in (SENT, ACKNOWLEDGED)),
        *((PEERS, "peer", nth_delivery(garbles), of, "corrupted", always) for of in (SENT, ACKNOWLEDGED)),
        *((PEERS, "peer", records_twice, of, "published_twice", always) for of in (SENT, ACKNOWLEDGED)),
        *((PEERS, "peer", nth_delivery(invents), of, "stray", always) for of in (SENT, BOTH)),
        (BROKERS, "broker", tells_a_stranger, TOPIC, "stray", always),
        (BROKERS, "subscriber", nth_delivery(lambda *_: None), TOPIC, "lost", no_losses),
        (
            BROKERS,
            "subscriber",
            nth_delivery(repeats),
            TOPIC,
            "duplicated",
            once_at_most,
        ),
    ],
)
def test_a_defect_is_reported_under_every_contract_that_it_breaks(
    records_of, runs, file, role, change, of, figure, breaks
):
    def build(spec, rng):
        machine = build_machine(spec, rng)
        if of is SINCE:
            subscribes_to_all(machine)
        if spec.name == f"r0/{role}-0":
            change(machine)
        return machine

    same = (file, figure, of is SINCE)
    if same not in runs:
        runs[same] = records_of(file, build, *NO_FAULT)
    run = runs[same]
    wrong = {
        contract: found
        for contract in contracts(of, file)
        if (found := told(run, contract)) != ({f"events.{figure}"} if figure and breaks(contract) else set())
    }
    assert wrong == {}


def test_events_lost_in_a_cut_are_losses_if_the_contract_survives_cuts(records_of, with_role):
    run = records_of(PEERS, with_role("peer", nth_delivery(lambda *_: None, 150)), CUT)
    for survives, lost in ((None, True), (("cut",), True), (("kill",), False)):
        found = told(run, replace(ACKNOWLEDGED, survives=survives))
        assert found == ({"events.lost"} if lost else set()), survives


def test_an_event_without_publisher_is_reported_under_every_delivery(records_of, with_role):
    """Also with acknowledged publications: the bytes are those of no published event."""

    def unpublished(usual, told):
        usual(told)
        usual(replace(told, first_seq=told.first_seq + 1_000_000, payload=b"?" * len(told.payload)))

    run = records_of(PEERS, with_role("peer", nth_delivery(unpublished)))
    for delivery in CHOICES["delivery"]:
        figure = "stray" if delivery in ("at-least-once", "best-effort") else "duplicated"
        found = told(run, replace(ACKNOWLEDGED, delivery=delivery, order="none"))
        assert found == {f"events.{figure}"}, delivery


def test_every_kind_of_promise_is_in_the_table():
    """A new choice of a contract needs a row above."""
    assert set(CHOICES["published"]) == {"sent", "acknowledged", "sent-then-acknowledged"}
    assert set(CHOICES["audience"]) == {"all", "topic", "content"}
    assert set(CHOICES["order"]) == {"none", "publisher", "stream", "total"}
    assert set(CHOICES["delivery"]) == {*LOSSLESS, *NO_REPEATS, "best-effort"}
