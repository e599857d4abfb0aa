"""A replica in a chain with inputs by hand: valid messages of neighbours, commits, and publishers."""

from random import Random

import pytest

from node.core import machine as m
from node.core.epochs import first_seq_of_epoch
from node.protocols.sprinkler import messages as wire
from node.protocols.sprinkler.proxy import Proxy
from node.protocols.sprinkler.storage.batches import epoch_mark
from tests.node.cluster import specs
from tests.node.protocols.sprinkler.by_hand import ByHand

OWN, OTHERS = 0, 1
SERVICE, DRIVER = "r0/configuration-0", "r0/driver-0"
NONE = (wire.Counter(OWN, 0), wire.Counter(OTHERS, 0))


def configuration(number, members, joining="", began=1):
    """Return a configuration with these members by index, head first, each of incarnation 1: "012"."""
    rows = [wire.Replica(int(index), wire.Standing.MEMBER, 1) for index in members]
    rows += [wire.Replica(int(index), wire.Standing.JOINING, 1) for index in joining]
    return wire.Configuration(number, began, tuple(rows))


def replica(index, told):
    """Return a replica of r0 that has received the first configuration."""
    given = specs(regions=2, proxies=3, configuration=True)
    bench = ByHand(Proxy(next(spec for spec in given if spec.name == f"r0/proxy-{index}"), Random(1)))
    bench.connect(SERVICE, told)
    return bench


def history(bench):
    return bench.machine.history.streams[OWN]


def follow(bench, successor, number):
    """Let the successor connect and send FOLLOW."""
    bench.connect(successor, wire.Follow(number, NONE))


def head():
    bench = replica(0, configuration(1, "012"))
    bench.connect("r1/proxy-2", wire.Advertisement(NONE))
    bench.connect(DRIVER)
    follow(bench, "r0/proxy-1", 1)
    assert bench.sent("r0/proxy-1", wire.Follow) == [wire.Follow(1, NONE)]
    return bench


def middle():
    bench = replica(1, configuration(1, "012"))
    bench.connect("r0/proxy-0")
    follow(bench, "r0/proxy-2", 1)
    return bench


def surpassed(bench):
    """Let another region report more of the stream than its owner has, for two advertisement periods."""
    for _ in range(5):
        bench.say("r1/proxy-2", wire.Advertisement((wire.Counter(OWN, 90), wire.Counter(OTHERS, 0))))
        bench.give(m.Nudge(), 800_000)


def publish(first_request, count=2):
    return wire.Publish(wire.EventKind.DATA, 0, OWN, first_request, count, 1, 0, b"x" * count)


def data(first_seq, count=2):
    return wire.Events(wire.EventKind.DATA, 0, OWN, first_seq, count, 1, 0, 0, b"x" * count)


def test_a_replica_waits_for_its_first_configuration():
    bench = replica(0, wire.Configuration(0, 0, ()))
    bench.connect(DRIVER)
    bench.say(DRIVER, publish(1))
    assert [refused.code for refused in bench.sent(DRIVER, wire.Refused)] == [wire.Refusal.NOT_HEAD]


def test_an_uncommitted_repetition_is_acknowledged_once_when_committed():
    bench = head()
    bench.say(DRIVER, publish(1), publish(1))
    bench.say("r0/proxy-1", wire.Stored((wire.Counter(OWN, 2),)))
    assert bench.sent(DRIVER, wire.Published) == [wire.Published(OWN, 1, 1, 2)]
    assert history(bench).cnt == 2


def test_a_follower_that_has_more_than_its_predecessor_is_refused_and_not_served():
    bench = head()
    bench.say(DRIVER, publish(1))
    bench.say("r0/proxy-1", wire.Follow(1, (wire.Counter(OWN, 3), wire.Counter(OTHERS, 0))))
    (refused,) = bench.sent("r0/proxy-1", wire.Refused)
    assert (refused.code, refused.stream) == (wire.Refusal.UNEXPECTED, OWN)
    assert "3 events" in refused.reason
    (line,) = bench.logged("follower_ahead")
    assert line.fields == {"peer": "r0/proxy-1", "stream": OWN, "cnt": 3, "own": 2}
    bench.say(DRIVER, publish(3))
    assert bench.sent("r0/proxy-1", wire.Events, wire.Publication) == []
    bench.say("r0/proxy-1", wire.Follow(1, (wire.Counter(OWN, 2), wire.Counter(OTHERS, 0))))
    assert [batch.first_seq for batch in bench.sent("r0/proxy-1", wire.Events)] == [3]


def test_uncommitted_events_are_not_served():
    bench = head()
    bench.connect("r0/client-0")
    bench.say("r0/client-0", wire.Subscribe(OWN, 0))
    bench.say(DRIVER, publish(1))
    assert bench.sent("r0/client-0", wire.Events) == []
    bench.say("r0/proxy-1", wire.Stored((wire.Counter(OWN, 2),)))
    assert len(bench.sent("r0/client-0", wire.Events)) == 1


def test_publications_after_a_refused_one_are_refused_until_it_is_repeated():
    """Check it, because otherwise events of one publisher would be stored out of order."""
    bench = replica(1, configuration(1, "012"))
    bench.connect(DRIVER)
    bench.say(DRIVER, publish(1))
    bench.say(SERVICE, configuration(2, "1"))
    bench.give(m.TimerFired(("restore",)), 3_000_000)
    bench.say(DRIVER, publish(3))
    assert bench.sent(DRIVER, wire.Published) == []
    bench.say(DRIVER, publish(1), publish(3))
    assert [each.first_request for each in bench.sent(DRIVER, wire.Published)] == [1, 3]


def test_the_middle_ignores_data_before_its_predecessors_answer():
    bench = middle()
    bench.say("r0/proxy-0", data(1))
    assert history(bench).cnt == 0
    bench.say("r0/proxy-0", wire.Follow(1, NONE), data(1))
    assert history(bench).cnt == 2
    assert len(bench.sent("r0/proxy-2", wire.Events)) == 1


def test_the_middle_forwards_stored_when_it_and_its_successor_have_the_events():
    bench = middle()
    bench.say("r0/proxy-0", wire.Follow(1, NONE), data(1), data(3))
    assert bench.sent("r0/proxy-0", wire.Stored) == []
    bench.say("r0/proxy-2", wire.Stored((wire.Counter(OWN, 2),)))
    assert bench.sent("r0/proxy-0", wire.Stored) == [wire.Stored((wire.Counter(OWN, 2),))]
    assert (history(bench).committed, history(bench).cnt) == (2, 4)


def test_a_successor_learns_that_the_stream_is_complete_after_the_recovered_events():
    bench = replica(0, configuration(2, "012", began=2))
    bench.connect("r1/proxy-2")
    follow(bench, "r0/proxy-1", 2)
    bench.say("r1/proxy-2", wire.Advertisement((wire.Counter(OWN, 4), wire.Counter(OTHERS, 0))), data(1, 4))
    assert bench.sent("r0/proxy-1", wire.Whole) == []
    bench.give(m.TimerFired(("restore",)), 60_000_000)
    assert not bench.machine.head.is_restoring
    told = bench.sent("r0/proxy-1", wire.Events, wire.Whole)
    assert [type(each) for each in told] == [wire.Events, wire.Whole]
    assert told[0] == epoch_mark(OWN, 5, 2), "behind the events of before"


def test_stored_of_an_earlier_configuration_does_not_count():
    bench = head()
    bench.say(DRIVER, publish(1))
    bench.say(SERVICE, configuration(2, "012"))
    bench.say("r0/proxy-1", wire.Stored((wire.Counter(OWN, 2),)))
    assert bench.sent(DRIVER, wire.Published) == []
    bench.say("r0/proxy-1", wire.Follow(2, NONE), wire.Stored((wire.Counter(OWN, 2),)))
    assert len(bench.sent(DRIVER, wire.Published)) == 1


def test_a_follow_of_a_later_configuration_waits():
    bench = replica(0, configuration(1, "01"))
    follow(bench, "r0/proxy-2", 2)
    assert bench.sent("r0/proxy-2", wire.Follow) == []
    bench.say(SERVICE, configuration(2, "02"))
    assert bench.sent("r0/proxy-2", wire.Follow) == [wire.Follow(2, NONE)]


def test_the_tail_passes_the_token_and_then_commits_only_what_the_joiner_has():
    bench = replica(2, configuration(1, "02"))
    bench.connect("r0/proxy-0")
    bench.say("r0/proxy-0", wire.Follow(1, NONE), data(1))
    bench.say(SERVICE, configuration(2, "02", "1"))
    bench.say("r0/proxy-0", wire.Follow(2, NONE))
    follow(bench, "r0/proxy-1", 2)
    sent = bench.sent("r0/proxy-1", wire.Events, wire.Token)
    assert [type(each) for each in sent] == [wire.Events, wire.Token]
    bench.say("r0/proxy-0", data(3))
    assert history(bench).committed == 2
    bench.say("r0/proxy-1", wire.Stored((wire.Counter(OWN, 4),)))
    assert history(bench).committed == 4


@pytest.mark.parametrize(("number", "said"), [(2, [wire.Joined(2)]), (1, [])])
def test_the_joiner_sends_joined_only_for_the_present_token(number, said):
    bench = replica(1, configuration(2, "02", "1"))
    bench.connect("r0/proxy-2")
    bench.say("r0/proxy-2", wire.Follow(2, NONE), data(1), wire.Token(number))
    assert bench.sent(SERVICE, wire.Joined) == said


def test_a_removed_replica_keeps_only_committed_events():
    bench = middle()
    bench.say("r0/proxy-0", wire.Follow(1, NONE), data(1), data(3))
    bench.say("r0/proxy-2", wire.Stored((wire.Counter(OWN, 2),)))
    bench.say(SERVICE, configuration(2, "02"))
    assert history(bench).cnt == 4
    bench.say(SERVICE, configuration(3, "02", "1"))
    assert history(bench).cnt == 2


def test_a_replica_drops_all_data_if_the_chain_restarted_meanwhile():
    bench = middle()
    bench.say("r0/proxy-0", wire.Follow(1, NONE), data(1))
    bench.say("r0/proxy-2", wire.Stored((wire.Counter(OWN, 2),)))
    bench.say(SERVICE, configuration(4, "0", "1", began=3))
    assert history(bench).cnt == 0


def test_a_deposed_head_that_is_cut_off_reports_no_epoch():
    """Check that the head, which cannot know, does not report an epoch that its successor never accepts."""
    bench = head()
    surpassed(bench)
    assert bench.logged("epoch_began") == []


def test_an_epoch_is_reported_when_the_whole_chain_has_it():
    bench = head()
    surpassed(bench)
    bench.say("r0/proxy-1", wire.Stored((wire.Counter(OWN, first_seq_of_epoch(1) - 1),)))
    (line,) = bench.logged("epoch_began")
    assert (line.level, line.fields["epoch"], line.fields["seen"]) == ("error", 1, 90)


def test_if_the_head_dies_the_next_head_reports_the_epoch():
    bench = middle()
    bench.say("r0/proxy-0", wire.Follow(1, NONE), epoch_mark(OWN, 1, 1))
    bench.say(SERVICE, configuration(2, "12"))
    bench.say("r0/proxy-2", wire.Follow(2, NONE))
    assert bench.logged("epoch_began") == []
    bench.say("r0/proxy-2", wire.Stored((wire.Counter(OWN, first_seq_of_epoch(1) - 1),)))
    (line,) = bench.logged("epoch_began")
    assert (line.level, line.fields["epoch"]) == ("error", 1)


def test_the_successor_of_a_head_that_died_during_a_recovery_repeats_it():
    bench = middle()
    bench.say("r0/proxy-0", wire.Follow(1, NONE), wire.Paths((wire.Hop(OTHERS, 1), wire.Hop(OWN, 0))))
    bench.say(SERVICE, configuration(2, "12"))
    assert bench.machine.head.is_restoring
    bench = middle()
    bench.say("r0/proxy-0", wire.Follow(1, NONE), wire.Whole(1))
    bench.say(SERVICE, configuration(2, "12"))
    assert not bench.machine.head.is_restoring
