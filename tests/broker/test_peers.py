"""A role that publishes and subscribes at once, without any server, is judged as roles with one trait are."""

from dataclasses import replace

import pytest

from node.core.deliveries import RecordKind
from node.systems import build_machine

SHIFT = 1_000_000


def of_one_delivery(change):
    """Return a change of the 20th delivery: `change` gets the original function and the message."""

    def changed(machine):
        usual, count = machine.deliver, 0

        def deliver(told):
            nonlocal count
            count += 1
            if count == 20:
                change(usual, told)
            else:
                usual(told)

        machine.deliver = deliver

    return changed


def invents(usual, told):
    """Deliver the message, and events with numbers that were never published."""
    usual(told)
    usual(replace(told, first_seq=told.first_seq + SHIFT))


def garbles(usual, told):
    usual(replace(told, payload=bytes(told.payload)[::-1]))


def test_a_peer_that_publishes_and_subscribes_gets_its_own_events_correctly(wrong_with):
    assert wrong_with("peers.yaml", build_machine) == {}


@pytest.mark.parametrize(
    ("change", "what"), [(garbles, "corrupted"), (invents, "stray"), (lambda *both: None, "lost")]
)
def test_a_defect_of_such_a_role_is_reported_as_itself(wrong_with, with_role, change, what):
    assert list(wrong_with("peers.yaml", with_role("peer", of_one_delivery(change)))) == [what]


def test_breaches_of_every_contract_fail_a_run_without_expectations(summary_with, with_role):
    garbled = summary_with("peers.yaml", with_role("peer", of_one_delivery(garbles)), "expect=[]")
    assert (garbled["verdict"], garbled["events"]["corrupted"] > 0) == ("failed", True)
    broken = [each["text"] for each in garbled["expectations"] if not each["held"]]
    assert broken == ["events.corrupted == 0"]


def test_an_experiment_that_expects_less_says_so(summary_with, with_role):
    garbled = with_role("peer", of_one_delivery(garbles))
    assert summary_with("peers.yaml", garbled, "expect=[events.corrupted >= 0]")["verdict"] == "passed"


def records_twice(peer):
    usual = peer.record
    peer.record = lambda kind, *given: [
        usual(kind, *given) for _ in range(1 + (kind == RecordKind.PUBLISHED))
    ]


def test_double_records_of_a_publisher_are_reported_as_such(wrong_with, with_role):
    assert list(wrong_with("peers.yaml", with_role("peer", records_twice))) == ["published_twice"]
