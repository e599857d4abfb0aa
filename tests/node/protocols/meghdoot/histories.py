"""Random histories of a society: peers die, come back where there is much to do, leave; ways are cut."""

from random import Random

from node.core import machine as m
from tests.node.protocols.meghdoot.societies import REGIONS, Society

PAUSES_US = (20_000, 500_000, 2_000_000, 5_000_000, 10_000_000)
WHAT = {
    "crash": 3,
    "restart": 3,
    "many restart": 2,
    "leave": 2,
    "half": 1,
    "cut": 2,
    "one way": 2,
    "partition": 2,
    "three sides": 1,
    "pause": 2,
}


class History:
    """The history of one society. gone: nodes that were told to leave, and until when that may take."""

    def __init__(self, seed, **given):
        self.rng = rng = Random(seed)
        asked = {
            "attributes": rng.choice([1, 1, 2, 2, 3, 7]),
            "subscribers": rng.choice([4, 8, 14]),
            "each": rng.choice([1, 4, 12]),
            "rate_per_s": rng.choice([2, 5, 10]),
            "gap_us": rng.choice([500, 50_000]),
            "match_cost": rng.choice([0.0, 0.5, 0.5]),
            "expire_us": 200_000_000,
            "gone_us": 80_000_000,
        }
        self.asked = asked | given
        self.society = Society(seed=seed, **self.asked)
        self.down, self.gone, self.told = [], {}, []

    def happen(self, count=5):
        """Several things, some before what was before is repaired; then nothing more."""
        self.run(3_000_000)
        for _ in range(count):
            [what] = self.rng.choices(list(WHAT), WHAT.values())
            self.told.append((self.society.now_us, what))
            getattr(self, what.replace(" ", "_"))()
            self.run(self.rng.choice(PAUSES_US))
            if self.rng.random() < 0.5:
                self.heal()
            if self.rng.random() < 0.5:
                self.come_back()
        self.heal()
        self.come_back()
        self.run(10_000_000)
        self.society.finish(100_000_000)

    def run(self, us):
        until_us = self.society.now_us + us
        while self.society.now_us < until_us:
            self.society.run(min(100_000, until_us - self.society.now_us))
            for name in list(self.gone):
                there = self.society.network.nodes.get(self.society.addresses[name])
                if there is None or there.is_finished:
                    del self.gone[name]
                    if there is not None:
                        self.kill(name)

    # --- One thing each

    def there(self):
        """Return the subscribers that may be stopped; publishers stay."""
        nodes = self.society.nodes()
        return [name for name in sorted(nodes) if "subscriber" in name and name not in self.gone]

    def some(self, share):
        there = self.there()
        return self.rng.sample(there, min(len(there), max(1, int(share * len(there)))))

    def kill(self, name):
        self.society.kill(name)
        self.down.append(name)

    def come_back(self):
        for name in self.down:
            self.society.restart(name)
        self.down.clear()

    def crash(self):
        for name in self.some(1 / 6):
            self.kill(name)

    def half(self):
        for name in self.some(1 / 2):
            self.kill(name)

    def restart(self):
        for name in self.some(1 / 6):
            self.kill(name)
            self.run(self.rng.choice([0, 100_000, 3_000_000]))
        self.come_back()

    def many_restart(self):
        """At once, so that they come to the same peers, which are split or copied."""
        for name in self.some(1 / 3):
            self.kill(name)
        self.come_back()

    def leave(self):
        for name in self.some(1 / 6):
            self.gone[name] = True
            self.society.network.give(self.society.addresses[name], m.Finish())

    def heal(self):
        self.society.network.reaches = lambda a, b: True

    def regions(self, may):
        self.society.network.reaches = lambda a, b: may((a >> 16) & 255, (b >> 16) & 255)

    def cut(self):
        self.regions(lambda a, b: {a, b} != {2, 3})

    def one_way(self):
        self.regions(lambda a, b: (a, b) != (2, 3))

    def partition(self):
        self.regions(lambda a, b: a // 2 == b // 2)

    def three_sides(self):
        self.regions(lambda a, b: min(a, REGIONS - 2) == min(b, REGIONS - 2))

    def pause(self):
        name = self.rng.choice(sorted(self.society.nodes()))
        away = self.society.addresses[name]
        self.society.network.reaches = lambda a, b: away not in {a, b}
