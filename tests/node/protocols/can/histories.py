"""Random histories of a CAN: nodes join, copy, leave, crash and restart; paths are cut and healed.

Events happen, some before the last one is repaired.
"""

from random import Random

from node.protocols.can.overlay import Can
from node.protocols.can.parameters import CanParameters
from tests.node.protocols.can.overlays import Overlay, wrong

REPAIR_US = CanParameters().repair_us
LEAVE_US = 5_000_000
STEPS = 1 << 40  # of a coordinate, as Meghdoot has them
PAUSES_US = (0, 20_000, 500_000, 3_000_000, 10_000_000, 20_000_000)
WHAT = {
    "crash": 3,
    "most crash": 1,
    "oldest": 1,
    "restart": 3,
    "join": 3,
    "join at one": 3,
    "leave": 3,
    "most leave": 1,
    "cut": 2,
    "one way": 2,
    "partition": 2,
    "three sides": 1,
    "pause": 2,
}


class History:
    """The history of one overlay. told: the past events.

    gone: nodes that have left and may be absent, and since when.
    """

    def __init__(self, seed, dimensions=(2, 2, 3, 4, 6, 8, 14), counts=(1, 2, 3, 6, 12, 24)):
        self.rng, self.told = Random(seed), []
        self.count = self.rng.choice(counts)
        self.copies = self.rng.choice([0.0, 0.0, 0.2, 0.6])
        self.cuts = self.rng.choice([0.0, 0.5])
        self.gone = {}
        gap_us = self.rng.choice([0, 50_000, 300_000])
        self.overlay = Overlay(self.count, self.rng.choice(dimensions), seed, gap_us)
        for node in self.overlay.nodes:
            node.splits = self.split

    @property
    def network(self):
        return self.overlay.network

    # --- What happens

    def happen(self, count):
        for _ in range(count):
            [what] = self.rng.choices(list(WHAT), WHAT.values())
            self.told.append((self.network.clock.now_us, what))
            getattr(self, what.replace(" ", "_"))()
            self.run(self.rng.choice(PAUSES_US))
            if self.rng.random() < 0.5:
                self.heal()
        self.heal()

    def settle(self, rounds=40):
        """Wait until everything is repaired; return whether it is."""
        self.run(2 * REPAIR_US)
        for _ in range(rounds):
            self.run(4_000_000)
            if self.is_right():
                return True
        return False

    def is_right(self):
        """Return whether zones are a partition, all neighbours are known, and each copy belongs to an
        owner.
        """
        nodes = [node for node in self.overlay.nodes if not self.is_stranded(node.can)]
        owners = [node for node in nodes if node.can.zones]
        copying = [node for node in nodes if not node.can.zones]
        return wrong(owners) == (0, 0, []) and all(map(self.copies_rightly, copying))

    def is_stranded(self, can):
        """Return whether a node cannot join, because all nodes that it knows are gone."""
        return not can.is_active and not set(can.claims.outsiders()) & set(self.network.nodes)

    def copies_rightly(self, node):
        """Return whether a replica and its owner have the same knowledge and know each other."""
        there = self.network.nodes.get(node.can.claims.original)
        if there is None:
            return False
        owner = there.machine.can
        known = set(owner.claims.table) == set(node.can.claims.table)
        return known and bool(owner.zones) and node.can.own in owner.claims.own.replicas

    def split(self, zone):
        """Choose a copy, a random split, or a split in the middle."""
        if self.rng.random() < self.copies:
            return "copy"
        if self.rng.random() >= self.cuts:
            return None
        dimension = self.rng.randrange(zone.dimensions)
        low, high = (round(each * STEPS) for each in (zone.low[dimension], zone.high[dimension]))
        if high - low < 2:
            return None
        at = self.rng.choice([low + 1, high - 1, self.rng.randrange(low + 1, high)])
        return (dimension, at / STEPS) if zone.low[dimension] < at / STEPS < zone.high[dimension] else None

    def run(self, us):
        """Let time pass; stop nodes that have left."""
        until_us = self.network.clock.now_us + us
        while self.network.clock.now_us < until_us or not us:
            self.overlay.run(min(250_000, until_us - self.network.clock.now_us))
            for address, late_us in list(self.gone.items()):
                there = self.network.nodes.get(address)
                if there is None or there.machine.can.has_left or self.network.clock.now_us >= late_us:
                    del self.gone[address]
                    if there is not None:
                        self.network.kill(address)
            if not us:
                return

    # --- One thing each

    def staying(self):
        """Return the nodes that do not leave and have zones or copies."""
        there = [address for address in sorted(self.network.nodes) if address not in self.gone]
        return [each for each in there if self.network.nodes[each].machine.can.is_active]

    def some(self, most):
        """Draw some nodes, but spare one."""
        there = self.staying()
        return self.rng.sample(
            there, min(self.rng.randint(1, max(1, int(most * len(there)))), len(there) - 1)
        )

    def kill(self, addresses):
        for address in addresses:
            self.network.kill(address)

    def crash(self):
        self.kill(self.some(1 / 6))

    def most_crash(self):
        self.kill(self.some(2 / 3))

    def oldest(self):
        there = self.staying()
        if len(there) > 1:
            (self.kill if self.rng.random() < 0.5 else self.let_leave)(there[:1])

    def restart(self):
        there = self.staying()
        if len(there) > 1:
            address = self.rng.choice(there)
            self.network.kill(address)
            self.run(self.rng.choice([0, 100_000, 3_000_000]))
            self.admit(address)

    def admit(self, address, contacts=None):
        node = self.overlay.join(address)
        node.splits = self.split
        there = sorted(set(self.network.nodes) - {address})
        node.contacts = contacts or self.rng.sample(there, len(there))
        node.is_direct = contacts is not None

    def join(self):
        for _ in range(self.rng.randint(1, 4)):
            self.count += 1
            self.admit(self.count)

    def join_at_one(self):
        """Let several nodes join at once in the zones of one node."""
        contact = self.rng.choice(self.staying() or sorted(self.network.nodes))
        for _ in range(self.rng.randint(1, 4)):
            self.count += 1
            rest = [each for each in sorted(self.network.nodes) if each != contact]
            self.admit(self.count, [contact, *self.rng.sample(rest, len(rest))])

    def let_leave(self, addresses):
        for address in addresses:
            self.gone[address] = self.network.clock.now_us + LEAVE_US
            self.overlay.act(address, Can.leave)

    def leave(self):
        self.let_leave(self.some(1 / 6))

    def most_leave(self):
        there = self.staying()
        self.let_leave(self.rng.sample(there, max(0, len(there) - self.rng.randint(1, 3))))

    def heal(self):
        self.network.reaches = lambda a, b: True

    def cut(self):
        self.network.reaches = lambda a, b: {a % 4, b % 4} != {2, 3}

    def one_way(self):
        self.network.reaches = lambda a, b: (a % 4, b % 4) != (2, 3)

    def partition(self):
        self.network.reaches = lambda a, b: a % 4 // 2 == b % 4 // 2

    def three_sides(self):
        self.network.reaches = lambda a, b: a % 3 == b % 3

    def pause(self):
        """Pause one node, which neither receives nor sends until it continues."""
        away = self.rng.choice(sorted(self.network.nodes))
        self.network.reaches = lambda a, b: away not in {a, b}
