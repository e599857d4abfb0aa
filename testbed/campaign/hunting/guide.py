"""Which case comes next: one of its own, or one made from an interesting one; and what counts as new."""

from collections.abc import Mapping
from math import log2
from random import Random

from experiments.hunting.case import Case, Disturbance, Moment
from experiments.hunting.drawing import Drawing
from experiments.hunting.huntdir import Interesting
from experiments.hunting.mutating import Parent, mutated

FIRST = 12
"""So many cases are drawn before any is made from another."""
DRAWN = 0.3
"""How often one is drawn all the same."""
MOMENTS_MAX = 40


class Guide:
    """The corpus, and what was seen. guided: whether cases are made from interesting ones."""

    def __init__(self, drawing: Drawing, seed: int, *, guided: bool) -> None:
        self._drawing = drawing
        self._seed = seed
        self._guided = guided
        self._corpus: list[Interesting] = []
        self._chosen: list[int] = []
        self.seen: set[str] = set()

    @property
    def size(self) -> int:
        """Of the corpus."""
        return len(self._corpus)

    def next(self, number: int) -> Case:
        """The case of this number."""
        drawn = self._seed * 1_000_000 + number
        if not self._guided or len(self._corpus) < 2 or number < FIRST:
            return self._drawing.case(drawn)
        rng = Random(f"guide {self._seed} {number}")  # noqa: S311  to be replayed, not to be kept secret
        if rng.random() < DRAWN:
            return self._drawing.case(drawn)
        parent, other = self._pick(rng), self._pick(rng)
        self._chosen[parent] += 1
        made = mutated(rng, self._drawing, self._parent(parent), self._parent(other))
        return made or self._drawing.case(drawn)

    def take(
        self,
        case: Case,
        features: Mapping[str, int],
        cost: int,
        starving: tuple[tuple[Disturbance, ...], ...] = (),
        moments: tuple[Moment, ...] = (),
    ) -> Interesting | None:
        """Note what a case showed; the case with what was new, if anything was.

        starving, moments: as of `Interesting`.
        """
        new = {feature: at_us for feature, at_us in features.items() if feature not in self.seen}
        if not new:
            return None
        interesting = Interesting(case, new, cost, starving, moments)
        self.add(interesting)
        return interesting

    def add(self, interesting: Interesting) -> None:
        """Put a case into the corpus."""
        self.seen.update(interesting.new)
        self._corpus.append(interesting)
        self._chosen.append(0)

    def _pick(self, rng: Random) -> int:
        """A case: those with much that was new, late and cheap ones, more often; seldom twice. In the time
        of one that costs ten times as much many cheap ones are run, which find more.
        """
        usual = sorted(each.cost for each in self._corpus)[len(self._corpus) // 2] + 1
        weights = [
            log2(2 + len(each.new))
            * (1 + at / len(self._corpus))
            / ((1 + chosen) * (0.3 + each.cost / usual) ** 2)
            for at, (each, chosen) in enumerate(zip(self._corpus, self._chosen, strict=True))
        ]
        return rng.choices(range(len(weights)), weights)[0]

    def _parent(self, at: int) -> Parent:
        interesting = self._corpus[at]
        moments = sorted({at_us for at_us in interesting.new.values() if at_us >= 0})
        return Parent(
            interesting.case, tuple(moments[-MOMENTS_MAX:]), interesting.starving, interesting.moments
        )
