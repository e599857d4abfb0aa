"""Each defect of a broken build of an external system is reported as exactly that defect."""

from dataclasses import replace
from functools import partial

import pytest

from analysis.errors import AnalysisError
from node.core.deliveries import RecordKind
from node.core.machine import Record
from node.systems import build_machine
from tests.broker.conftest import WRONG
from tests.virtual_runs import missed

pytestmark = pytest.mark.slow

NINE = "duration=9s"


def test_the_broker_keeps_its_contract_through_a_cut_and_what_was_confirmed_is_counted(summary_with):
    summary = summary_with("brokers.yaml", build_machine, NINE)
    assert summary["verdict"] == "passed"
    assert {name: summary["events"][name] for name in WRONG} == dict.fromkeys(WRONG, 0)
    assert summary["events"]["delivered"] > 1_000
    found = summary["subscriptions"]
    assert found["asked"] > 12 * 4
    assert found["unconfirmed"] == 0
    assert 0 < found["wait_max_s"] < 0.2


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
        wrong_with("brokers.yaml", with_role("subscriber", renamed), "duration=2s", "faults=[]")


def test_a_run_in_which_nothing_came_to_those_who_subscribed_is_no_success(summary_with):
    def build(spec, rng):
        machine = build_machine(spec, rng)
        if spec.role == "broker":
            machine.take = lambda connection, message: None  # it never says that a subscription stands
        return machine

    summary = summary_with("brokers.yaml", build, "duration=3s", "faults=[]")
    assert (summary["events"]["lost"], summary["verdict"]) == (0, "failed")
    assert missed(summary)[1:] == ["events.delivered > 0", "subscriptions.unconfirmed == 0"]


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


DEAF, LATE = ("r0-subscriber-0", "r1-subscriber-0"), "r0-subscriber-1"


@pytest.mark.parametrize(
    ("faults", "blamed"),
    [
        ("", {*DEAF, LATE}),
        ("{at: 300ms, kill: r0/subscriber-0}", set()),
        (
            "{at: 100ms, isolate: r0, for: 4s}, "
            "{at: 300ms, kill: r1/subscriber-0}, {at: 3500ms, restart: r1/subscriber-0}",
            {*DEAF},
        ),
    ],
    ids=["without faults", "while a fault lasts", "from the end of a fault on"],
)
def test_subscriptions_are_to_be_confirmed_unless_a_fault_excuses_it(summary_with, faults, blamed):
    """The contract gives 1.5 s; it holds through no fault."""

    def build(spec, rng):
        machine = build_machine(spec, rng)
        if spec.host in DEAF:
            machine.take = lambda connection, message: None
        elif spec.host == LATE:
            hears_from(5_000_000)(machine)
        return machine

    settings = (NINE, "workload.subscriptions={each: 4, within: 300ms}", f"faults=[{faults}]")
    summary = summary_with("brokers.yaml", build, *settings)
    found = summary["subscriptions"]
    assert found["unconfirmed"] == 4 * len(blamed)
    assert 4.5 < found["wait_max_s"] < 5.5
    assert summary["verdict"] == ("failed" if blamed else "passed")
    notes = [note for note in summary["fidelity"]["notes"] if "not confirmed in time" in note]
    assert {note.partition(":")[0] for note in notes} == blamed


COMES_AND_GOES = """faults=[
  {at: 3s, kill: r0/subscriber-0}, {at: 5s, restart: r0/subscriber-0},
  {at: 4s, join: r0/subscriber-1}, {at: 7s, leave: r0/subscriber-1},
  {at: 3s, stop: r1/subscriber-1}, {at: 4s, continue: r1/subscriber-1}]"""


def test_a_subscriber_that_comes_and_goes_is_not_blamed(summary_with):
    settings = (NINE, COMES_AND_GOES, "expect=[events.lost == 0]")
    summary = summary_with("brokers.yaml", build_machine, *settings)
    assert (missed(summary), summary["verdict"]) == ([], "passed")


def test_regions_may_own_no_stream(summary_with):
    few = ("workload.topics=2", "workload.subscriptions.each=1", "duration=3s", "faults=[]")
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


def test_a_peer_that_publishes_and_subscribes_gets_its_own_events_correctly(wrong_with):
    assert wrong_with("peers.yaml", build_machine) == {}


def test_breaches_of_every_contract_fail_a_run_unless_it_expects_less(summary_with, with_role):
    def garbles(peer):
        usual = peer.deliver
        peer.deliver = lambda told: usual(replace(told, payload=bytes(told.payload)[::-1]))

    run = partial(summary_with, "peers.yaml", with_role("peer", garbles), "duration=1s")
    garbled = run("expect=[]")
    assert (garbled["verdict"], garbled["events"]["corrupted"] > 0) == ("failed", True)
    assert missed(garbled) == ["events.corrupted == 0"]
    assert run("expect=[events.corrupted >= 0]")["verdict"] == "passed"
