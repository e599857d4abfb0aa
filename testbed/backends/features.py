"""What was new in a run. A *feature* is a text: what a role did (a kind of message that it sent, and of the
message within, or an event of its log), on what, and in which phase (before any disturbance, during some,
after the last one), and how often, by powers of 16; of log events also during which kinds of disturbance.
Steady traffic gives the same features in every run; what a disturbance brings about gives others. Kept with
each feature is when it first occurred, and of what was seldom done also by whom, so that faults can be put
there.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from experiments.hunting.case import Moment

SETTLING_US = 1_000_000  # after a disturbance's end: what follows it is still of it
BEFORE, DURING, AFTER = "before", "during", "after"
LOGGED = "log "
"""How the kind of what is logged begins."""

SELDOM = 40
"""What all of a role do no more often in a run is seldom done."""
EACH_MAX, MOMENTS_MAX = 4, 60
"""Of so many times that something was done in a phase it is known who did it; and so many are told of."""


@dataclass(frozen=True, slots=True)
class Phase:
    """From when on which kinds of disturbance act, in microseconds since time 0."""

    from_us: int
    name: str


def phases(spans: Iterable[tuple[str, int, int]]) -> list[Phase]:
    """The phases of a run. spans: kind, begin and end of each disturbance, since time 0."""
    known = [(kind, begin, end + SETTLING_US) for kind, begin, end in spans]
    edges = sorted({edge for _, begin, end in known for edge in (begin, end)})
    found = [Phase(-1 << 62, BEFORE)]
    for edge in edges:
        acting = sorted({kind for kind, begin, end in known if begin <= edge < end})
        begun = any(begin <= edge for _, begin, _ in known)
        found.append(Phase(edge, "+".join(acting) if acting else AFTER if begun else BEFORE))
    return found


class Deed(NamedTuple):
    """What a role did, on what, in a phase of this name."""

    role: str
    cause: str
    kind: str
    phase: str


@dataclass(slots=True)
class Noticed:
    """What the roles of a run did, and how often, and when first and by whom."""

    _counts: dict[Deed, int] = field(default_factory=dict)
    _first: dict[Deed, list[tuple[int, tuple[str, ...]]]] = field(default_factory=dict)

    def note(self, deed: Deed, since_us: int, processes: tuple[str, ...]) -> None:
        """This was done so long since time 0. processes: by which one, and to whom."""
        count = self._counts.get(deed, 0)
        self._counts[deed] = count + 1
        if count < EACH_MAX:
            self._first.setdefault(deed, []).append((since_us, processes))

    def features(self) -> dict[str, int]:
        """All features of the run, and when each first occurred: microseconds since time 0."""
        found: dict[str, int] = {}
        often: Counter[tuple[str, str, str]] = Counter()
        for (role, _, kind, phase), count in self._counts.items():
            often[role, kind, _broad(phase)] += count
        for deed, first in self._first.items():
            at_us = first[0][0]
            for text in _features(deed, often[deed.role, deed.kind, _broad(deed.phase)]):
                found[text] = min(at_us, found.get(text, at_us))
        return found

    def moments(self, rng: Random) -> list[Moment]:
        """Some of the times since time 0 when something was done that is seldom done."""
        often: Counter[tuple[str, str, str]] = Counter()
        for deed, count in self._counts.items():
            often[deed[:3]] += count
        known: dict[tuple[str, str, str], list[Moment]] = {}
        for deed, first in self._first.items():
            if often[deed[:3]] <= SELDOM:
                some = [Moment(at_us, processes) for at_us, processes in first if at_us >= 0]
                known.setdefault(deed[:3], []).extend(some)
        each = [moments for moments in known.values() if moments]
        chosen = rng.sample(each, min(len(each), MOMENTS_MAX))
        return sorted((rng.choice(moments) for moments in chosen), key=lambda moment: moment.at_us)


def _features(deed: Deed, count: int) -> Iterator[str]:
    """What is said of what a role did, so often in all: coarse enough that most runs show little new."""
    role, cause, kind, phase = deed
    broad = _broad(phase)
    if broad != BEFORE:  # how often until then says only how long that was
        yield f"{role} {kind} {broad} {_size(count)}"
    yield f"{role} {cause}>{kind} {broad}"
    for each in phase.split("+") if broad == DURING and kind.startswith(LOGGED) else ():
        yield f"{role} {kind} during {each}"


def _broad(phase: str) -> str:
    return phase if phase in {BEFORE, AFTER} else DURING


def _size(count: int) -> int:
    """A power of 16, so that only what happens very much more often is new."""
    return (count.bit_length() - 1) // 4
