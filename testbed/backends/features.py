"""What was new in a run. A *feature* is a text: what a role did (a kind of message that it sent, and of the
message within, or an event of its log), on what, and in which phase (before any disturbance, during some,
after the last one), and how often, by powers of 16; of log events also during which kinds of disturbance.
Steady traffic gives the same features in every run; what a disturbance brings about gives others. Kept with
each feature is when it first occurred, so that faults can be put there.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

SETTLING_US = 1_000_000  # after a disturbance's end: what follows it is still of it
BEFORE, DURING, AFTER = "before", "during", "after"
LOGGED = "log "
"""How the kind of what is logged begins."""


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


@dataclass(slots=True)
class Noticed:
    """What the roles of a run did, and how often, and when first."""

    _counts: dict[tuple[str, str, str, str], int] = field(default_factory=dict)
    _first_us: dict[tuple[str, str, str, str], int] = field(default_factory=dict)

    def note(self, role: str, cause: str, kind: str, phase: str, since_us: int) -> None:
        """A process of this role did this, on this, in a phase of this name, so long since time 0."""
        key = (role, cause, kind, phase)
        counts = self._counts
        if key in counts:
            counts[key] += 1
        else:
            counts[key] = 1
            self._first_us[key] = since_us

    def features(self) -> dict[str, int]:
        """All features of the run, and when each first occurred: microseconds since time 0."""
        found: dict[str, int] = {}
        often: Counter[tuple[str, str, str]] = Counter()
        for (role, _, kind, phase), count in self._counts.items():
            often[role, kind, _broad(phase)] += count
        for key, at_us in self._first_us.items():
            role, cause, kind, phase = key
            for text in _features(role, cause, kind, phase, often[role, kind, _broad(phase)]):
                found[text] = min(at_us, found.get(text, at_us))
        return found


def _features(role: str, cause: str, kind: str, phase: str, count: int) -> Iterator[str]:
    """What is said of what a role did, so often in all: coarse enough that most runs show little new."""
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
