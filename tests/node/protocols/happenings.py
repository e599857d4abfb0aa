"""Random histories of nodes in a flat network: events happen, some before the last one is repaired."""


class History:
    """A history. happenings: possible events with weights. pauses_us: between them. told: the past events."""

    def __init__(self, rng, happenings, pauses_us):
        self.rng, self.happenings, self.pauses_us, self.told = rng, happenings, pauses_us, []

    def run(self, us):
        raise NotImplementedError

    def region(self, address):
        """Return the region of an address, one of four."""
        raise NotImplementedError

    def come_back(self):
        """Restart nodes that are down, if the system does so."""

    def happen(self, count):
        for _ in range(count):
            [what] = self.rng.choices(list(self.happenings), self.happenings.values())
            self.told.append((self.network.clock.now_us, what))
            getattr(self, what.replace(" ", "_"))()
            self.run(self.rng.choice(self.pauses_us))
            if self.rng.random() < 0.5:
                self.heal()
            self.come_back()
        self.heal()

    def heal(self):
        self.network.reaches = lambda a, b: True

    def regions(self, reaches):
        self.network.reaches = lambda a, b: reaches(self.region(a), self.region(b))

    def cut(self):
        self.regions(lambda a, b: {a, b} != {2, 3})

    def one_way(self):
        self.regions(lambda a, b: (a, b) != (2, 3))

    def partition(self):
        self.regions(lambda a, b: a // 2 == b // 2)

    def three_sides(self):
        self.regions(lambda a, b: min(a, 2) == min(b, 2))

    def pause(self):
        """Pause one node, which neither receives nor sends until it continues."""
        away = self.rng.choice(sorted(self.network.nodes))
        self.network.reaches = lambda a, b: away not in {a, b}
