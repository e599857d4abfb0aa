"""Each defect of a broken build of an external system is reported as exactly that defect."""

from collections import Counter

import pyarrow.parquet as pq
import pytest

from analysis.errors import AnalysisError
from experiments.records.rundir import RunDirectory
from node import systems
from node.core.deliveries import RecordKind
from node.core.machine import Record
from node.systems import build_machine
from tests.broker.conftest import WRONG

pytestmark = pytest.mark.slow

TOLD_OF_CLIENTS = ("lost", "stray", "duplicated", "out_of_order", "resurrected", "corrupted")
NINE = "duration=9s"


def in_place_of_delivery(machine, deliver):
    """Replace the 20th delivery of a topic by `deliver`, which gets the original function and two messages.

    They are this message and the next one.
    """
    usual, messages = machine.deliver, []

    def delivered(message):
        if messages and message.topic != messages[0].topic:
            usual(message)
            return
        messages.append(message)
        if len(messages) == 20:
            return
        if len(messages) == 21:
            deliver(usual, messages[-2], message)
        else:
            usual(message)

    machine.deliver = delivered


def drops(machine):
    in_place_of_delivery(machine, lambda usual, message, following: usual(following))


def repeats(machine):
    in_place_of_delivery(machine, lambda usual, *both: [usual(each) for each in (*both, both[0])])


def reorders(machine):
    in_place_of_delivery(machine, lambda usual, message, following: [usual(following), usual(message)])


def after(broker, seconds):
    """Says whether so much time has passed since it was first asked."""
    asked_us = []

    def passed():
        asked_us.append(broker.now_us)
        return broker.now_us - asked_us[0] > seconds * 1_000_000

    return passed


def tells_a_stranger(broker):
    usual, told, is_late = broker.pass_on, [], after(broker, 3)

    def pass_on(message, *, from_broker):
        usual(message, from_broker=from_broker)
        following = broker.followers.get(message.topic, set())
        everybody = set().union(*broker.followers.values())
        stranger = next(iter(sorted(everybody - following)), None)
        if is_late() and stranger is not None and not told:
            told.append(stranger)
            usual_followers, broker.followers = broker.followers, {message.topic: {stranger}}
            usual(message, from_broker=True)
            broker.followers = usual_followers

    broker.pass_on = pass_on


PER_MESSAGE = (3, 4)
"""Events: 200 a second on three topics, every 50 ms."""


def test_the_broker_keeps_its_contract_through_a_cut_and_what_was_confirmed_is_counted(summary_with):
    summary = summary_with("brokers.yaml", build_machine, NINE)
    assert summary["verdict"] == "passed"
    assert {name: summary["events"][name] for name in WRONG} == dict.fromkeys(WRONG, 0)
    assert summary["events"]["delivered"] > 1_000
    found = summary["subscriptions"]
    assert found["asked"] > 12 * 4
    assert found["unconfirmed"] == 0
    assert 0 < found["wait_max_s"] < 0.2


def test_each_defect_of_a_broker_is_reported_as_itself(wrong_with, with_role):
    wrong = wrong_with("brokers.yaml", with_role("broker", tells_a_stranger), NINE)
    assert list(wrong) == ["stray"]
    assert wrong["stray"] in PER_MESSAGE


def test_each_defect_of_three_subscribers_is_reported_as_itself(summary_with, tmp_path):
    changes = {"r0-subscriber-0": drops, "r1-subscriber-0": repeats, "r2-subscriber-0": reorders}

    def build(spec, rng):
        machine = build_machine(spec, rng)
        changes.get(spec.name.replace("/", "-"), lambda machine: None)(machine)
        return machine

    summary = summary_with("brokers.yaml", build, NINE)
    [run] = map(RunDirectory.open, tmp_path.iterdir())
    wrong = Counter()
    for row in pq.read_table(run.table("deliveries")).to_pylist():
        wrong += Counter({(row["client"], name): row[name] for name in TOLD_OF_CLIENTS})
    told = dict(zip(changes, ("lost", "duplicated", "out_of_order"), strict=True))
    assert wrong.keys() == told.items()
    assert set(wrong.values()) <= set(PER_MESSAGE)
    broken = [each["text"] for each in summary["expectations"] if not each["held"]]
    assert sorted(broken) == sorted(f"events.{name} == 0" for name in told.values())
    assert summary["verdict"] == "failed"


def test_events_of_an_unplanned_stream_are_no_success(wrong_with, with_role):
    def renamed(machine):
        usual = machine.emit
        machine.emit = lambda *effects: usual(
            *(
                Record(each.kind, 99, each.first_seq, each.count, each.covered, each.payload)
                if isinstance(each, Record) and each.count
                else each
                for each in effects
            )
        )

    with pytest.raises(AnalysisError, match="recorded events of stream 99"):
        wrong_with("brokers.yaml", with_role("subscriber", renamed), NINE)


THREE = ("workload.topics=3", "workload.subscriptions={each: 3}")
ONE_BROKER = (NINE, "topology=one-region", "faults=[]", *THREE)
"""Passes all topics on to three subscribers, in one order."""


@pytest.fixture
def total_order(monkeypatch, tmp_path, broker_module):
    """Let the broker promise one order for all subscribers."""
    path = tmp_path / f"broker_of_{tmp_path.name}.py"  # a module of its own for each test
    path.write_text(broker_module.read_text().replace('"subscription", "stream"', '"subscription", "total"'))
    monkeypatch.setenv(systems.MODULES_VARIABLE, str(path))
    systems.systems.cache_clear()


def swaps_topics_for_one(broker):
    """After 3 s one subscriber gets an event only after the next one, which is of another topic."""
    usual, held, is_late = broker.pass_on, [], after(broker, 3)

    def pass_on(message, *, from_broker):
        if not is_late() or held:
            usual(message, from_broker=from_broker)
            if len(held) == 1:
                held.append(broker.followers)
                broker.followers = {held[0].topic: {max(broker.followers[message.topic])}}
                usual(held[0], from_broker=True)
                broker.followers = held[1]
        else:
            held.append(message)
            everyone = broker.followers
            broker.followers = {message.topic: everyone[message.topic] - {max(everyone[message.topic])}}
            usual(message, from_broker=from_broker)
            broker.followers = everyone

    broker.pass_on = pass_on


@pytest.mark.usefixtures("total_order")
def test_one_order_for_all_is_kept_by_one_broker(wrong_with):
    assert wrong_with("brokers.yaml", build_machine, *ONE_BROKER) == {}


@pytest.mark.usefixtures("total_order")
def test_events_that_one_client_got_in_another_order_than_the_others_are_out_of_order(wrong_with, with_role):
    wrong = wrong_with("brokers.yaml", with_role("broker", swaps_topics_for_one), *ONE_BROKER)
    assert list(wrong) == ["out_of_order"]
    assert wrong["out_of_order"] in PER_MESSAGE


def test_the_same_is_no_defect_where_only_topics_are_in_order(wrong_with, with_role):
    assert wrong_with("brokers.yaml", with_role("broker", swaps_topics_for_one), *ONE_BROKER) == {}


def test_a_run_in_which_nothing_came_to_those_who_subscribed_is_no_success(summary_with):
    def build(spec, rng):
        machine = build_machine(spec, rng)
        if spec.role == "broker":
            machine.take = lambda connection, message: None  # it never says that a subscription stands
        return machine

    summary = summary_with("brokers.yaml", build, NINE)
    assert (summary["events"]["lost"], summary["verdict"]) == (0, "failed")
    texts = [each["text"] for each in summary["expectations"] if not each["held"]]
    assert texts[1:] == ["events.delivered > 0", "subscriptions.unconfirmed == 0"]


def never_hears(subscriber):
    """Let a subscriber ignore confirmations and events."""
    subscriber.take = lambda connection, message: None


def test_a_client_without_confirmations_is_reported_although_others_get_events(summary_with, with_role):
    summary = summary_with("brokers.yaml", with_role("subscriber", never_hears), NINE)
    assert summary["events"]["lost"] == 0 < summary["events"]["delivered"]
    assert summary["verdict"] == "failed"
    assert summary["subscriptions"]["unconfirmed"] >= 4
    assert any(note.startswith("r0-subscriber-0: ") for note in summary["fidelity"]["notes"])


DIES = "faults=[{name: dies, at: 300ms, kill: r0/subscriber-0}]"
COMES_BACK = "faults=[{at: 300ms, kill: r0/subscriber-0}, {at: 5s, restart: r0/subscriber-0}]"
ALONE = "faults=[{name: alone, at: 100ms, isolate: r0, for: 4s}]"


def hears_from(at_us):
    """Return a change that delays the record of confirmations until this time."""

    def change(subscriber):
        usual, held = subscriber.record, []

        def record(kind, *given):
            since_us = subscriber.now_us - (subscriber.schedule.start_us or subscriber.now_us)
            if kind == RecordKind.SUBSCRIBED and since_us < at_us:
                held.append((kind, *given))
                return
            while held and since_us >= at_us:
                usual(*held.pop(0))
            usual(kind, *given)

        subscriber.record = record

    return change


@pytest.mark.parametrize(
    ("fault", "unconfirmed"),
    [(DIES, False), (COMES_BACK, True), (ALONE, True), ("faults=[]", True)],
)
def test_a_fault_excuses_a_subscription_only_while_it_lasts(summary_with, with_role, fault, unconfirmed):
    settings = (NINE, fault, "workload.subscriptions={each: 4}")
    found = summary_with("brokers.yaml", with_role("subscriber", never_hears), *settings)["subscriptions"]
    assert (found["unconfirmed"] > 0) is unconfirmed


def test_a_confirmation_after_the_end_of_a_fault_is_in_time(summary_with, with_role):
    """The contract gives 1.5 s; it holds through no fault."""
    settings = (NINE, "workload.subscriptions={each: 4, within: 300ms}")
    build = with_role("subscriber", hears_from(5_000_000))
    excused = summary_with("brokers.yaml", build, *settings, ALONE)["subscriptions"]
    late = summary_with("brokers.yaml", build, *settings, "faults=[]")["subscriptions"]
    assert (excused["unconfirmed"], late["unconfirmed"]) == (0, 4)
    assert 4.5 < late["wait_max_s"] < 5.5


@pytest.mark.parametrize(
    "faults",
    [
        "faults=[{at: 3s, kill: r0/subscriber-0}, {at: 5s, restart: r0/subscriber-0}]",
        "faults=[{at: 4s, join: r0/subscriber-0}, {at: 7s, leave: r0/subscriber-0}]",
        "faults=[{at: 3s, stop: r1/subscriber-1}, {at: 4s, continue: r1/subscriber-1}]",
    ],
)
def test_a_subscriber_that_comes_and_goes_is_not_blamed(summary_with, faults):
    settings = (NINE, faults, "expect=[events.lost == 0]")
    summary = summary_with("brokers.yaml", build_machine, *settings)
    wrong = [each["text"] for each in summary["expectations"] if not each["held"]]
    assert (wrong, summary["verdict"]) == ([], "passed")


def test_regions_may_own_no_stream(summary_with):
    few = ("workload.topics=2", "workload.subscriptions.each=1", "duration=7s")
    summary = summary_with("brokers.yaml", build_machine, *few)
    assert summary["convergence"]["connected"]
    assert summary["events"]["lost"] == 0


def by_event(machine):
    """Record every event separately, even if several arrived together."""
    usual, size = machine.record, machine.spec.workload["event_size_bytes"]

    def record(kind, stream, seq=0, count=0, payload=b""):
        if kind != RecordKind.DELIVERED:
            usual(kind, stream, seq, count, payload)
            return
        for number in range(count):
            usual(kind, stream, seq + number, 1, payload[number * size : (number + 1) * size])

    machine.record = record


def test_deliveries_that_cannot_be_compared_are_reported(summary_with):
    def build(spec, rng):
        machine = build_machine(spec, rng)
        if spec.role == "subscriber":
            by_event(machine)
        return machine

    summary = summary_with("brokers.yaml", build, "duration=3s", "faults=[]", "workload.rate=2000/s")
    assert any("could not be compared" in note for note in summary["fidelity"]["notes"])
