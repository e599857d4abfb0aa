"""Random histories of a society: peers die, restart at loaded peers, leave; links are cut."""

from random import Random

from tests.node.protocols import happenings
from tests.node.protocols.community import region
from tests.node.protocols.meghdoot.societies import Society

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


class History(happenings.History):
    """The history of one society. gone: nodes that were told to leave; down: killed nodes."""

    def __init__(self, seed, **given):
        super().__init__((rng := Random(seed)), WHAT, PAUSES_US)
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
        self.network = self.society.network
        self.down, self.gone = [], set()

    def region(self, address):
        return region(address)

    def happen(self, count=5):
        self.run(3_000_000)
        super().happen(count)
        self.start_again()
        self.run(10_000_000)
        self.society.finish(60_000_000)

    def run(self, us):
        until_us = self.society.now_us + us
        while self.society.now_us < until_us:
            self.society.run(min(100_000, until_us - self.society.now_us))
            for name in sorted(self.gone):
                there = self.society.network.nodes.get(self.society.addresses[name])
                if there is None or there.is_finished:
                    self.gone.remove(name)
                    if there is not None:
                        self.kill(name)

    # --- One thing each

    def there(self):
        """Return the subscribers that may be stopped; publishers are spared."""
        nodes = self.society.nodes()
        return [name for name in sorted(nodes) if "subscriber" in name and name not in self.gone]

    def some(self, share):
        there = self.there()
        return self.rng.sample(there, min(len(there), max(1, int(share * len(there)))))

    def kill(self, name):
        self.society.kill(name)
        self.down.append(name)

    def come_back(self):
        if self.rng.random() < 0.5:
            self.start_again()

    def start_again(self):
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
        self.start_again()

    def many_restart(self):
        """Restart many at once, so that they join at the same peers, which are split or copied."""
        for name in self.some(1 / 3):
            self.kill(name)
        self.start_again()

    def leave(self):
        for name in self.some(1 / 6):
            self.gone.add(name)
            self.society.finish_one(name)
