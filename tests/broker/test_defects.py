"""What a broken build of a system that nothing outside knows does wrong is told as exactly that."""

from dataclasses import replace

import pytest

from analysis.errors import AnalysisError
from node import systems
from node.core.machine import Record
from node.systems import build_machine

NINE = "duration=9s"


def in_place_of_delivery(machine, deliver):
    """The 20th delivery is done by `deliver`: it is given the usual way, the message and the next one."""
    usual, messages = machine.deliver, []

    def delivered(message):
        messages.append(message)
        if len(messages) == 20:
            return
        if len(messages) == 21:
            deliver(usual, messages[-2], message)
        else:
            usual(message)

    machine.deliver = delivered


def same_topic(machine):
    machine.spec = replace(machine.spec, subscriptions=machine.spec.subscriptions[:1])


def drops(machine):
    same_topic(machine)
    in_place_of_delivery(machine, lambda usual, message, following: usual(following))


def repeats(machine):
    same_topic(machine)
    in_place_of_delivery(machine, lambda usual, *both: [usual(each) for each in (*both, both[0])])


def reorders(machine):
    same_topic(machine)
    in_place_of_delivery(machine, lambda usual, message, following: [usual(following), usual(message)])


def tells_a_stranger(broker):
    usual, told = broker.pass_on, []

    def pass_on(message, *, from_broker):
        usual(message, from_broker=from_broker)
        following = broker.followers.get(message.topic, set())
        everybody = set().union(*broker.followers.values())
        stranger = next(iter(sorted(everybody - following)), None)
        if broker.now_us > 6_000_000 and stranger is not None and not told:
            told.append(stranger)
            usual_followers, broker.followers = broker.followers, {message.topic: {stranger}}
            usual(message, from_broker=True)
            broker.followers = usual_followers

    broker.pass_on = pass_on


PER_MESSAGE = (3, 4)
"""Events: 200 a second on three topics, every 50 ms."""


def test_the_broker_keeps_its_contract_through_a_cut(wrong_with):
    assert wrong_with("brokers.yaml", build_machine, NINE) == {}


@pytest.mark.parametrize(
    ("role", "change", "what"),
    [
        ("subscriber", drops, "lost"),
        ("broker", tells_a_stranger, "stray"),
        ("subscriber", repeats, "duplicated"),
        ("subscriber", reorders, "out_of_order"),
    ],
)
def test_a_defect_is_told_as_what_it_is(wrong_with, with_role, role, change, what):
    wrong = wrong_with("brokers.yaml", with_role(role, change), NINE)
    assert list(wrong) == [what]
    assert wrong[what] in PER_MESSAGE


def test_events_of_a_stream_that_nobody_planned_are_no_success(wrong_with, with_role):
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
    """The broker promises one order for all subscribers."""
    path = tmp_path / f"broker_of_{tmp_path.name}.py"  # a module of its own for each test
    path.write_text(broker_module.read_text().replace('"subscription", "stream"', '"subscription", "total"'))
    monkeypatch.setenv(systems.MODULES_VARIABLE, str(path))
    systems.systems.cache_clear()


def swaps_topics_for_one(broker):
    """After 6 s one subscriber gets an event only after the next one, which is of another topic."""
    usual, held = broker.pass_on, []

    def pass_on(message, *, from_broker):
        if held or broker.now_us < 6_000_000:
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
    assert "events.delivered > 0" in [each["text"] for each in summary["expectations"] if not each["held"]]
