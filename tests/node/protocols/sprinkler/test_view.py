"""Views: merging with a neighbour's view, and the graph of many views (paper 3.2, Membership)."""

from random import Random

import pytest

from node.protocols.sprinkler.region.neighbourhood import MembershipView

PROXY = 0
OWN = 1


def view(*members, seed=0):
    made = MembershipView(OWN, PROXY, 5, Random(seed))
    made.members = list(members)
    return made


class Region:
    """Members that gossip in rounds: each with one neighbour, and sometimes with the proxy, which answers."""

    def __init__(self, members, *, size, seed, views=None):
        self.rng = Random(seed)
        self.alive = dict.fromkeys(range(members))
        self.views = {member: MembershipView(member, PROXY, size, self.rng) for member in self.alive}
        for member, given in (views or {}).items():
            self.views[member].members = list(given)

    def crash(self, members):
        for member in members:
            del self.alive[member]

    def gossip(self, rounds):
        for _ in range(rounds):
            for member in list(self.alive):
                partner = self.views[member].neighbour()
                if partner is not None:
                    self._tell(member, partner)
                if member != PROXY and (partner == PROXY or self.rng.random() < 0.1):
                    self._tell(member, PROXY)
                    self._tell(PROXY, member)

    def _tell(self, sender, receiver):
        if receiver in self.alive:
            self.views[receiver].received(sender, self.views[sender].members)

    def hops_to_everyone(self):
        """Return the steps along views, in either direction, to the farthest member; None if disconnected."""
        joined = {member: [] for member in self.alive}
        for member in self.alive:
            for other in self.views[member].members:
                if other in self.alive:
                    joined[member].append(other)
                    joined[other].append(member)
        hops, found = {PROXY: 0}, [PROXY]
        for member in found:
            for other in joined[member]:
                if other not in hops:
                    hops[other] = hops[member] + 1
                    found.append(other)
        return max(hops.values()) if len(hops) == len(self.alive) else None

    def share_of_crashed(self):
        entries = [other for member in self.alive for other in self.views[member].members]
        return sum(other not in self.alive for other in entries) / len(entries)


@pytest.mark.parametrize("seed", range(4))
def test_the_sender_and_a_random_part_of_too_many_members_stay(seed):
    mine = view(2, 3, 4, 5, 6, seed=seed)
    mine.received(7, [8, 9, 10, 11, 12])
    assert len(set(mine.members)) == 5
    assert 7 in mine.members
    assert set(mine.members) <= set(range(2, 13))


def test_a_view_smaller_than_v_has_the_proxy_in_it():
    mine = view(2, 3, 4, 5, PROXY)
    mine.remove(5)
    assert PROXY in mine.members
    full = view(2, 3, 4, 5, 6)
    full.remove(2)
    assert full.members == [3, 4, 5, 6, PROXY]


def test_gossip_connects_a_region_with_few_hops():
    region = Region(300, size=12, seed=0)
    region.gossip(30)
    assert region.hops_to_everyone() <= 5


def test_crashed_members_disappear():
    region = Region(200, size=10, seed=0)
    region.gossip(30)
    region.crash(range(1, 61))
    before = region.share_of_crashed()
    assert before > 0.2
    region.gossip(60)
    assert region.share_of_crashed() < before / 3
    assert region.hops_to_everyone() is not None


def test_a_partition_heals_through_the_proxy():
    halves = {member: [1, 2, 3] if member < 50 else [51, 52, 53] for member in range(1, 100)}
    region = Region(100, size=3, seed=1, views=halves)
    region.views[PROXY].members = []
    assert region.hops_to_everyone() is None
    region.gossip(15)
    assert region.hops_to_everyone() is not None
    mixed = [m for m in range(1, 50) if any(other >= 50 for other in region.views[m].members)]
    assert len(mixed) > 10
