"""The deadline for the confirmation of a subscription: the settle time, restarted by faults that excuse
delays.
"""

import pyarrow as pa
import pytest

from analysis.timelines import schemas
from analysis.timelines.delivery.confirmations import check_confirmations, notes, summary
from node.core.deliveries import RecordKind
from node.core.specification import PlannedSubscription
from tests.analysis.timelines.world import END, ZERO, S, facts_of

CLIENT, TOPIC = "r0-member-0", 1  # of r1
SETTLES_S = 8


def facts(*faults):
    """RunMetadata of a short run of Scribe in four regions."""
    some = ("roles.member=1", "workload.topics=4", "workload.subscriptions.members=2", "expect=[]")
    return facts_of(*some, f"faults=[{', '.join(faults)}]", name="scribe-link-failure")


def records(*told_s):
    """Return the client's records: its start, and confirmations of its subscription."""
    empty = dict.fromkeys(schemas.RECORDS.names, 0) | {"host": CLIENT, "stream": TOPIC}
    rows = [empty | {"kind": int(RecordKind.SESSION), "t_ns": ZERO - S}]
    rows += [empty | {"kind": int(RecordKind.SUBSCRIBED), "t_ns": ZERO + int(at_s * S)} for at_s in told_s]
    return pa.Table.from_pylist(rows, schema=schemas.RECORDS)


def is_late(told_s, *faults, asked_s=1, until_s=None):
    """Whether a subscription at a time was not confirmed in time, if it was at this one."""
    asked = [PlannedSubscription(asked_s * 1_000_000, TOPIC)]
    if until_s is not None:
        asked.append(PlannedSubscription(until_s * 1_000_000, TOPIC, on=False))
    told = () if told_s is None else (told_s,)
    found = check_confirmations({CLIENT: tuple(asked)}, records(*told), facts(*faults))
    assert summary(found)["asked"] == 1
    assert len(list(notes(found))) == summary(found)["unconfirmed"]
    return bool(summary(found)["unconfirmed"])


@pytest.mark.parametrize(("told_s", "late"), [(8.9, False), (9.1, True), (None, True)])
def test_a_subscription_must_be_confirmed_within_the_settle_time(told_s, late):
    assert is_late(told_s) is late


@pytest.mark.parametrize(("told_s", "late"), [(10.9, False), (11.1, True)])
def test_when_a_link_is_cut_the_time_restarts_even_with_other_paths(told_s, late):
    assert is_late(told_s, "{name: cut, at: 3s, cut: [r0, r1], for: 10s}") is late


@pytest.mark.parametrize(("told_s", "late"), [(12.9, False), (13.1, True)])
@pytest.mark.parametrize("region", ["r0", "r1", "r2"])
def test_while_a_region_with_servers_is_isolated_no_confirmation_is_required(told_s, late, region):
    """Check that a region's outage excuses it: the topic's state may be there, though its stream is r1's."""
    assert is_late(told_s, f"{{name: alone, at: 3s, isolate: {region}, for: 2s}}") is late


def test_a_subscription_that_ends_early_needs_no_confirmation():
    assert not is_late(None, until_s=SETTLES_S)


def test_a_late_subscription_needs_no_confirmation():
    assert not is_late(None, asked_s=END // S - SETTLES_S + 1)
