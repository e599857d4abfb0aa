"""Subscribers of topics: their subscriptions over time, and the records of them."""

import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from cutset_client.subscriptions import Change, Subscriptions, topics_of

from node.core.deliveries import RecordKind, read_records
from node.core.specification import PlannedSubscription
from tests.node.programs.minded import WITHIN, program, spec
from tests.node.tcp.launched import launcher, log_lines
from tests.systems.client.test_client import TOLD

TOPICS = {"kind": "topics", "topics": 3, "publishers": 2, "event_size_bytes": 64, "rate_per_s": 200.0}
HOMES = ("r0", "r1", "r1", "r0", "r0", "r1")
ASKING, THERE, LEAVING, GONE = (
    RecordKind.SUBSCRIBING,
    RecordKind.SUBSCRIBED,
    RecordKind.UNSUBSCRIBING,
    RecordKind.UNSUBSCRIBED,
)
FOLLOWS = """
import cutset_client
with cutset_client.connect() as session:
    subscriber = session.subscriber()
    session.log("first", {"topics": subscriber.topics})
    session.ready()
    for change in subscriber:
        session.log("change", {"topic": change.topic, "on": change.on, "all": subscriber.topics})
        (subscriber.subscribed if change.on else subscriber.unsubscribed)(change.topic)
"""
PUBLISHES = """
import cutset_client
with cutset_client.connect() as session:
    publisher = session.publisher()
    session.ready()
    for event in publisher:
        publisher.sent(event)
        session.log("published", {"topic": event.topic, "stream": event.stream})
        publisher.acknowledged(event)
"""
LINES = (sys.executable, "-m", "cutset_client.stdio", "sh", str(Path(__file__).with_name("topics.sh")))


def asked(*changes: tuple[int, int, bool]) -> tuple[PlannedSubscription, ...]:
    """Return subscriptions to both streams of each topic, as the workload requests them."""
    return tuple(
        PlannedSubscription(at_us, 2 * topic + number, on)
        for at_us, topic, on in changes
        for number in range(2)
    )


def told(*changes: tuple[int, int, bool], kind: str = "topics") -> dict[str, object]:
    subscriptions = [{"at_us": each.at_us, "number": each.number, "on": each.on} for each in asked(*changes)]
    return {"homes": HOMES, "workload": {**TOPICS, "kind": kind}, "subscriptions": subscriptions}


def test_streams_of_a_topic_have_its_name_and_others_their_own():
    assert topics_of(told()) == ["t0", "t0", "t1", "t1", "t2", "t2"]
    assert topics_of(told(kind="stream")) == ["r0/0", "r1/1", "r1/2", "r0/3", "r0/4", "r1/5"]


def test_each_change_is_due_once_at_its_time():
    plan = told((0, 0, True), (0, 2, True), (700, 0, False), (700, 1, True))
    subscriptions = Subscriptions(plan, topics_of(plan))
    assert subscriptions.changes_until(0) == [Change("t0", True), Change("t2", True)]
    assert subscriptions.due_us == 700
    assert subscriptions.changes_until(699) == []
    assert subscriptions.changes_until(700) == [Change("t0", False), Change("t1", True)]
    assert subscriptions.due_us is None
    assert subscriptions.changes_until(10_000) == []
    plan = told((0, 0, True), (500, 0, False), (500, 1, True), (900, 1, False), (900, 2, True))
    subscriptions = Subscriptions(plan, topics_of(plan))
    subscriptions.changes_until(0)
    assert subscriptions.changes_until(1_000) == [Change("t0", False), Change("t2", True)], "at once"


def test_with_streams_every_topic_is_subscribed_from_the_start():
    plan = told(kind="stream")
    subscriptions = Subscriptions(plan, topics_of(plan))
    assert [change.topic for change in subscriptions.changes_until(0)] == topics_of(plan)
    assert subscriptions.due_us is None


@pytest.fixture
def launched():
    with launcher(WITHIN) as there:
        yield there


def client(folder, run, *changes, traits=("subscriber",)):
    minded = program(*run, is_client=True, ready=TOLD)
    given = {"workload": TOPICS, "homes": HOMES, "subscriptions": asked(*changes)}
    return spec(folder, minded, "r0/client-0", since="subscription", traits=traits, **given)


def kinds(one, *wanted):
    """Return kind and stream of each record of these kinds, in order."""
    found, _ = read_records(Path(one.deliveries).read_bytes())
    return [(each.kind, each.stream) for each in found if each.kind in wanted]


@pytest.mark.network
@pytest.mark.parametrize("run", [(sys.executable, "-c", FOLLOWS), LINES], ids=["library", "lines"])
def test_requests_and_answers_are_recorded_per_stream(tmp_path, launched, run):
    one = client(tmp_path, run, (0, 1, True), (50_000, 1, False), (50_000, 2, True))
    launched.start(one)
    launched.wait_ready(1)
    first = [(ASKING, 2), (ASKING, 3), (THERE, 2), (THERE, 3)]
    subscribing = (ASKING, THERE, LEAVING, GONE)
    launched.wait(lambda: launched.delivered.get(one.name) == {"2": 0, "3": 0})
    assert kinds(one, *subscribing) == first
    launched.go()
    launched.wait(lambda: "4" in launched.delivered[one.name])
    launched.finish(1)
    assert kinds(one, ASKING, THERE) == [*first, (ASKING, 4), (ASKING, 5), (THERE, 4), (THERE, 5)]
    assert kinds(one, LEAVING, GONE) == [(LEAVING, 2), (LEAVING, 3), (GONE, 2), (GONE, 3)]


@pytest.mark.network
def test_a_late_client_catches_up_with_its_due_subscriptions(tmp_path, launched):
    changes = ((0, 0, True), (1_000_000, 0, False), (1_000_000, 1, True), (3_600_000_000, 2, True))
    one = replace(client(tmp_path, (sys.executable, "-c", FOLLOWS), *changes), start=1)
    launched.start(one)
    launched.wait_ready(1)
    launched.tell("go", start_ns=time.time_ns(), late_us=2_000_000)
    launched.wait(lambda: "3" in launched.delivered.get(one.name, {}))
    launched.finish(1)
    told_first, *changed = [line for line in log_lines(one) if line["event"] in {"first", "change"}]
    assert told_first["topics"] == ["t0"]
    assert [(each["topic"], each["on"]) for each in changed] == [("t0", False), ("t1", True)]
    assert changed[-1]["all"] == ["t1"]


@pytest.mark.network
def test_several_publishers_of_a_topic_publish_under_its_name(tmp_path, launched):
    one = client(tmp_path, (sys.executable, "-c", PUBLISHES), traits=("publisher",))
    launched.start(one)
    launched.wait_ready(1)
    launched.go()
    launched.wait(lambda: launched.published.get(one.name, {}).get("4", 0) >= 2)
    launched.tell("stop_drivers")
    launched.finish(1)
    found = {(line["topic"], line["stream"]) for line in log_lines(one) if line["event"] == "published"}
    assert found == {("t0", 0), ("t1", 3), ("t2", 4)}


@pytest.mark.network
def test_unrequested_answers_are_ignored(tmp_path, launched):
    code = """
import cutset_client
with cutset_client.connect() as session:
    subscriber = session.subscriber()
    subscriber.subscribed("t2")
    subscriber.unsubscribed("t0")
    session.ready()
    session.ready()
    subscriber.subscribed("t0")
"""
    one = client(tmp_path, (sys.executable, "-c", code), (0, 0, True))
    launched.start(one)
    launched.wait_ready(1)
    launched.finish(1)
    assert kinds(one, ASKING, THERE, GONE) == [(ASKING, 0), (ASKING, 1), (THERE, 0), (THERE, 1)]
