"""The deadline for the confirmation of a subscription: the settle time, restarted by faults that excuse
delays.
"""

import pytest

from analysis.timelines.delivery.confirmations import check_confirmations, notes, summary
from node.core.deliveries import RecordKind
from node.core.specification import PlannedSubscription
from tests.analysis.timelines.record_rows import record, records_table
from tests.analysis.timelines.world import END, ZERO, S, facts_of

CLIENT, TOPIC = "r0-member-0", 1  # of r1
SETTLES_S = 8


def facts(*faults):
    """RunMetadata of a short run of Scribe in four regions."""
    some = ("roles.member=1", "workload.topics=4", "workload.subscriptions.members=2", "expect=[]")
    return facts_of(*some, f"faults=[{', '.join(faults)}]", name="scribe-link-failure")


def records(*told_s):
    """Return the client's records: its start, and confirmations of its subscription."""
    start = record(CLIENT, RecordKind.SESSION, TOPIC, t_ns=ZERO - S)
    told = [record(CLIENT, RecordKind.SUBSCRIBED, TOPIC, t_ns=ZERO + int(at_s * S)) for at_s in told_s]
    return records_table([start, *told])


def is_late(told_s, *faults, asked_s=1, until_s=None):
    """Return whether a subscription that was confirmed at this time, or never, counts as late."""
    asked = [PlannedSubscription(asked_s * 1_000_000, TOPIC)]
    if until_s is not None:
        asked.append(PlannedSubscription(until_s * 1_000_000, TOPIC, on=False))
    told = () if told_s is None else (told_s,)
    found = check_confirmations({CLIENT: tuple(asked)}, records(*told), facts(*faults))
    assert summary(found)["asked"] == 1
    assert len(list(notes(found))) == summary(found)["unconfirmed"]
    return bool(summary(found)["unconfirmed"])


ALONE = "{{name: alone, at: 3s, isolate: {}, for: 2s}}"  # the topic's state may be in any region


@pytest.mark.parametrize(
    ("faults", "until_s"),
    [
        ((), 9),
        (("{name: cut, at: 3s, cut: [r0, r1], for: 10s}",), 11),
        *(((ALONE.format(region),), 13) for region in ("r0", "r1", "r2")),
    ],
    ids=["calm", "since a cut, though other paths are left", "r0 was alone", "r1 was", "r2 was"],
)
def test_a_subscription_must_be_confirmed_within_the_settle_time_after_excusing_faults(faults, until_s):
    assert is_late(until_s - 0.1, *faults) is False
    assert is_late(until_s + 0.1, *faults) is True
    assert is_late(None, *faults) is True


def test_a_subscription_that_ends_early_or_comes_late_needs_no_confirmation():
    assert not is_late(None, until_s=SETTLES_S)
    assert not is_late(None, asked_s=END // S - SETTLES_S + 1)
