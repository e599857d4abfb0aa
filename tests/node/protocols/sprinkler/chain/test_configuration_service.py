"""A configuration service with inputs by hand: the members of the chain over time."""

from dataclasses import replace
from random import Random

import pytest

from node.core import machine as m
from node.protocols.sprinkler import messages as wire
from node.protocols.sprinkler.chain.configuration_service import NUMBERS_A_LIFE, ConfigurationService
from tests.node.cluster import specs
from tests.node.protocols.sprinkler.by_hand import ByHand

NOTHING = wire.Configuration(0, 0, ())


class Bench(ByHand):
    """r0's service; replicas are named by their numbers."""

    def __init__(self, *, storage=None, stored=(), replicas="012", start=0):
        given = specs(regions=1, proxies=3, configuration=True, storage=storage)
        super().__init__(ConfigurationService(replace(given[-1], start=start), Random(1)), stored)
        self.service = self.machine
        for index in replicas:
            self.come(index)

    def come(self, index, incarnation=1, remembers=NOTHING, has=0, cnt=0, full=False):
        self.connect(
            f"r0/proxy-{index}", remembers, wire.Status(has, cnt, int(full)), incarnation=incarnation
        )

    def tell(self, index, *messages, after_us=1_000):
        self.say(f"r0/proxy-{index}", *messages, after_us=after_us)

    def report(self, index, disk=wire.DiskState.WORKS, after_us=1_000):
        self.tell(index, wire.Status(self.service.chain.number, 0, disk), after_us=after_us)

    def join(self, index):
        """Let a replica report that it has joined."""
        self.tell(index, wire.Joined(self.told(index).number))

    def answer(self):
        """Let all connected replicas report that they are alive."""
        for name in list(self.connections):
            self.report(name[-1])

    def go(self, index, answer=True):
        self.lose(f"r0/proxy-{index}")
        if answer:
            self.answer()

    def lose_power(self, indices="012"):
        """Stop all replicas at once, so that none answers."""
        for index in indices:
            self.go(index, answer=False)
        for index in indices:
            self.grace_ends(index)

    def grace_ends(self, index):
        self.give(m.TimerFired(("grace", f"r0/proxy-{index}")), 200_000)

    @property
    def chain(self):
        """Return the chain as text: "012" are members, "01+2" has 2 joining."""
        chain = self.service.chain
        members = "".join(name[-1] for name in chain.members)
        return members + (f"+{chain.joining[-1]}" if chain.joining else "")

    def told(self, index):
        """Return the last configuration that a replica was sent."""
        number = self.connections[f"r0/proxy-{index}"]
        sent = [each for each in self.effects if isinstance(each, m.Send) and each.connection == number]
        found = [each for effect in sent for each in effect.messages if isinstance(each, wire.Configuration)]
        return found[-1] if found else None

    @property
    def appended(self):
        (append,) = [effect for effect in self.effects if isinstance(effect, m.Append)]
        return append.segment, append.messages[0].number


@pytest.fixture
def bench():
    return Bench()


def members(*indices, incarnation=1):
    return tuple(wire.Replica(index, wire.Standing.MEMBER, incarnation) for index in indices)


def test_the_first_configuration_waits_for_all_replicas_and_has_them_in_order():
    bench = Bench(replicas="20")
    assert bench.told("0") is None
    bench.come("1")
    assert bench.chain == "012"
    assert [bench.told(index).number for index in "012"] == [1, 1, 1]


def test_the_service_does_not_wait_forever():
    bench = Bench(replicas="21")
    bench.give(m.TimerFired(("form",)), 2_000_000)
    assert bench.chain == "12"
    bench.come("0")
    assert bench.chain == "12+0"


def test_a_replica_is_removed_when_its_grace_is_over(bench):
    bench.go("1")
    assert bench.chain == "012"
    bench.grace_ends("1")
    assert bench.chain == "02"
    assert bench.told("2").number == 2


def test_a_replica_that_reconnects_as_the_same_process_stays(bench):
    bench.go("1")
    bench.come("1")
    bench.grace_ends("1")
    assert bench.chain == "012"
    assert bench.told("1").number == 1


def test_restarted_replicas_join_at_the_end_one_at_a_time(bench):
    for index in "01":
        bench.go(index)
        bench.come(index, incarnation=2)
    assert bench.chain == "2+0"
    bench.join("0")
    assert bench.chain == "20+1"
    bench.join("1")
    assert bench.chain == "201"


def test_a_token_of_an_earlier_configuration_is_void(bench):
    bench.go("1")
    bench.come("1", incarnation=2)
    number = bench.told("1").number
    bench.go("0")
    bench.grace_ends("0")
    bench.tell("1", wire.Joined(number))
    assert bench.chain == "2+1"


def test_only_a_joining_replica_can_have_joined(bench):
    bench.go("1")
    bench.come("1", incarnation=2)
    bench.join("2")
    assert bench.chain == "02+1"


def test_the_last_member_is_never_removed_and_the_chain_restarts_with_it(bench):
    for index in "012":
        bench.go(index)
        bench.grace_ends(index)
    assert bench.chain == "2"
    bench.come("0", incarnation=2)
    assert bench.chain == "2+0"
    number = bench.told("0").number
    bench.come("2", incarnation=2)
    assert bench.chain == "2+0", "the third one may have more"
    bench.give(m.TimerFired(("anew",)), 2_000_000)
    assert bench.chain == "0+2"
    assert bench.told("0").began == number + 1


def test_nothing_is_sent_before_it_is_on_disk():
    bench = Bench(storage="disk")
    assert bench.chain == "012"
    assert bench.told("0") is None
    assert bench.appended == (1, 1)
    bench.give(m.Synced(1))
    assert bench.told("0").number == 1


def test_the_service_continues_from_its_disk():
    rows = members(2, 1)
    stored = [m.StoredSegment(3, (wire.Configuration(1, 1, rows), wire.Configuration(7, 1, rows)))]
    bench = Bench(storage="disk", stored=stored, replicas="21")
    assert bench.chain == "21"
    assert bench.appended == (4, 7)
    assert m.Rewrite((3,), ()) in bench.effects
    bench.give(m.Synced(1))
    assert bench.told("2").number == 7
    bench.grace_ends("1")
    assert bench.chain == "21"


def test_without_a_disk_it_adopts_the_newest_remembered_configuration():
    """Include a replica that was removed long ago and remembers a chain with itself in it; it must not
    decide.
    """
    bench = Bench(replicas="")
    bench.come("0", remembers=wire.Configuration(3, 1, members(0, 1, 2)))
    assert bench.chain == ""
    bench.come("1", remembers=wire.Configuration(5, 1, members(1, 2)))
    bench.come("2", remembers=wire.Configuration(4, 1, members(1, 2)))
    assert bench.chain == "12+0"
    assert bench.told("1").number > 5


@pytest.mark.parametrize("remembered", [NOTHING, wire.Configuration(7, 1, members(0))])
def test_without_a_disk_its_numbers_exceed_those_of_earlier_generations(remembered):
    bench = Bench(replicas="", start=2)
    bench.come("0", remembers=remembered, has=remembered.number)
    for index in "12":
        bench.come(index)
    told = bench.told("0")
    assert told.number > 2 * NUMBERS_A_LIFE
    assert told.began == (remembered.began or told.number), "the memory of the chain is what it was"


def test_messages_of_this_process_generation_do_not_count_for_an_earlier_one():
    bench = Bench(start=1)
    number = bench.service.chain.number
    bench.go("2")
    bench.grace_ends("2")
    bench.come("2", remembers=wire.Configuration(number, number, members(2)))
    assert bench.chain == "01+2"


def test_no_member_is_removed_before_another_one_proves_that_it_runs(bench):
    """Check it, because the service would otherwise wait for a chain of one that never existed."""
    bench.go("0", answer=False)
    bench.grace_ends("0")
    assert bench.chain == "012"
    bench.answer()
    assert bench.chain == "12"


def test_a_member_that_answers_in_the_microsecond_of_a_loss_stays(bench):
    bench.go("0", answer=False)
    bench.report("1", after_us=0)
    bench.grace_ends("0")
    assert bench.chain == "12"


def test_a_member_that_restarts_with_its_disk_keeps_its_position(bench):
    bench.go("0")
    bench.come("0", incarnation=2, has=1, cnt=5)
    assert bench.chain == "012"
    assert bench.told("1") == wire.Configuration(2, 1, members(0, incarnation=2) + members(1, 2))


def test_a_disk_older_than_the_chains_restart_is_ignored(bench):
    bench.lose_power()
    for index in "012":
        bench.come(index, incarnation=2)
    began = bench.told("0").began
    assert bench.chain == "0+1"
    bench.join("1")
    bench.lose_power("01")
    bench.come("1", incarnation=3, has=began - 1, cnt=9)
    assert bench.chain == "01+2"


def test_a_present_member_cannot_be_given_up(bench):
    bench.give(m.GiveUp("r0/proxy-2"))
    assert bench.chain == "012"
