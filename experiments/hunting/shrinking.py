"""Shrinks a case while it still causes a breach: delta debugging (Zeller and Hildebrandt, 2002).

In turn: a shorter run, fewer disturbances, settings as in the experiment, fewer processes and regions, a
lower rate, fewer targets of a disturbance, shorter disturbances. Each removal changes the timing of
everything else, so a smaller case may break only with another seed: while more than a few disturbances are
left, fewer are also tried with other seeds. Candidates are tried in a fixed order and the first that still
breaks is taken, so the result does not depend on the number of parallel runs. Cases that a system need not
survive are never tried.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from experiments.hunting import networks
from experiments.hunting.bounds import is_valid
from experiments.hunting.case import ON_PROCESSES, HuntCase, HuntDisturbance
from experiments.model import Experiment
from experiments.nemesis import Nemesis, whole_ms
from experiments.roles import DEFAULT
from topologies.quantities import DURATION, EVENT_RATE

RUNS_MAX = 150
"""Limit of cases tried for one finding."""
OTHERWISE_RUNS_MAX = 150
"""Additional limit of cases with other seeds."""
FEW = 3
"""Number of disturbances that needs no further reduction."""
SEEDS = 6
"""Number of other seeds for each smaller case."""
FirstFailing = Callable[[Sequence[HuntCase]], int | None]
"""Returns the index of the first case that still breaks, or None."""
SMALLER = ("two-regions", "three-regions")
RATES = (5, 10, 50)
SLOW_PER_S = 10
CHEAP = ("duration", "workload.rate")


@dataclass(slots=True)
class CaseShrinking:
    """The shrinking of one case. runs: cases tried so far."""

    base: Experiment
    nemesis: Nemesis
    first_failing: FirstFailing
    runs_max: int = RUNS_MAX
    together: int = 2
    runs: int = 0

    def shrink(self, case: HuntCase) -> HuntCase:
        """Return the smallest case found. `case` must break."""
        for cheaper in (self._shorter, self._slower):
            case = self._taken(case, cheaper)
        case = self._fewer(case)
        case = self._taken(case, self._shorter)
        case = self._taken(case, self._plainer)
        case = self._taken(case, self._smaller)
        case = self._taken(case, self._single)
        case = self._taken(case, self._brief)
        case = self._fewer(case)
        if len(case.disturbances) > FEW:
            self.runs_max += OTHERWISE_RUNS_MAX if self.runs_max == RUNS_MAX else 0
            case = self._fewer_otherwise(case)
        case = self._taken(case, self._usual)
        return self._taken(case, self._shorter)

    def _taken(self, case: HuntCase, candidates: Callable[[HuntCase], Iterator[HuntCase]]) -> HuntCase:
        """Apply steps of one kind until none still breaks."""
        while True:
            smaller = self._first(list(candidates(case)))
            if smaller is None:
                return case
            case = smaller

    def _first(self, candidates: Sequence[HuntCase]) -> HuntCase | None:
        valid = [each for each in candidates if is_valid(each, self.base, self.nemesis)]
        for at in range(0, len(valid), self.together):
            some = valid[at : at + self.together]
            if self.runs + len(some) > self.runs_max:
                return None
            self.runs += len(some)
            found = self.first_failing(some)
            if found is not None:
                return some[found]
        return None

    def _fewer(self, case: HuntCase) -> HuntCase:
        """Minimize the disturbances (ddmin)."""
        parts = 2
        nothing = self._first([replace(case, disturbances=())]) if case.disturbances else None
        if nothing is not None:
            return nothing
        while len(case.disturbances) >= 2:
            pieces = _pieces(case.disturbances, parts)
            subsets = [replace(case, disturbances=piece) for piece in pieces]
            rests = [
                replace(case, disturbances=_without(case.disturbances, piece))
                for piece in pieces
                if parts > 2
            ]
            found = self._first([*subsets, *rests])
            if found is not None:
                parts = 2 if found in subsets else max(parts - 1, 2)
                case = found
            elif parts >= len(case.disturbances):
                return case
            else:
                parts = min(parts * 2, len(case.disturbances))
        return case

    def _fewer_otherwise(self, case: HuntCase) -> HuntCase:
        """Minimize the disturbances, also with other seeds."""
        while len(case.disturbances) > FEW:
            pieces = _pieces(case.disturbances, 2)
            rests = [*pieces, *(_without(case.disturbances, (each,)) for each in case.disturbances)]
            smaller = self._first(
                [
                    replace(case, disturbances=rest, seed=case.seed + more)
                    for rest in rests
                    for more in range(1, SEEDS + 1)
                ]
            )
            if smaller is None:
                return case
            case = smaller
        return case

    def _shorter(self, case: HuntCase) -> Iterator[HuntCase]:
        """Yield runs that end soon after the last disturbance."""
        ends_us = max((each.end_us for each in case.disturbances), default=self.nemesis.start_us)
        least_us = ends_us + self.nemesis.quiet_us + self.nemesis.shortest_us
        now_us = self._duration_us(case)
        for duration_us in (least_us, (least_us + now_us) // 2):
            rounded_us = -(-duration_us // 100_000) * 100_000
            if rounded_us <= now_us * 0.9:
                yield _with(case, "duration", DURATION.format(rounded_us))

    def _slower(self, case: HuntCase) -> Iterator[HuntCase]:
        """Yield a run with few events, so that all further runs are short."""
        if self._rate(case) > SLOW_PER_S:
            yield _with(case, "workload.rate", EVENT_RATE.format(SLOW_PER_S))

    def _plainer(self, case: HuntCase) -> Iterator[HuntCase]:
        """Yield cases with settings as in the experiment."""
        odd = [path for path in case.settings if path not in CHEAP]
        if len(odd) > 1:
            yield replace(
                case, settings={path: case.settings[path] for path in CHEAP if path in case.settings}
            )
        for path in odd:
            yield replace(case, settings={key: value for key, value in case.settings.items() if key != path})

    def _usual(self, case: HuntCase) -> Iterator[HuntCase]:
        """Yield cases with one parameter as in the experiment: earlier steps may have made it unnecessary."""
        for path in case.settings:
            if path.startswith("parameters."):
                yield replace(
                    case, settings={key: case.settings[key] for key in case.settings if key != path}
                )

    def _smaller(self, case: HuntCase) -> Iterator[HuntCase]:
        """Yield cases with fewer regions, processes and events."""
        topology = case.settings.get("topology", self.base.topology)
        for name in SMALLER:
            if name == topology:
                break
            if "topology" in case.settings or topology not in SMALLER:
                yield _with(case, "topology", name)
        if isinstance(topology, dict):
            for less in networks.smaller(topology):
                yield _with(case, "topology", less)
        if list(self.base.roles) == [DEFAULT]:
            for role, count in self.base.roles[DEFAULT].items():
                now = case.settings.get(f"roles.{role}", count)
                for fewer in range(1, int(now)):
                    yield _with(case, f"roles.{role}", fewer)
        for slower in RATES:
            if slower < self._rate(case):
                yield _with(case, "workload.rate", EVENT_RATE.format(slower))

    def _single(self, case: HuntCase) -> Iterator[HuntCase]:
        """Yield cases with a disturbance of one process only, or separated from one other only."""
        for at, each in enumerate(case.disturbances):
            if each.kind in ON_PROCESSES and len(each.target) > 1:
                for process in each.target:
                    yield _with_one(case, at, replace(each, target=(process,)))
            if each.kind == "separate" and len(each.others) > 1:
                for process in each.others:
                    yield _with_one(case, at, replace(each, others=(process,)))

    def _brief(self, case: HuntCase) -> Iterator[HuntCase]:
        """Yield cases with shorter disturbances, down to the nemesis's shortest."""
        for at, each in enumerate(case.disturbances):
            for part in (4, 2):
                for_us = whole_ms(each.for_us // part)
                if for_us >= self.nemesis.shortest_us:
                    yield _with_one(case, at, replace(each, for_us=for_us))

    def _rate(self, case: HuntCase) -> float:
        """Return the events per second; 0 if the workload has no rate."""
        written = case.settings.get("workload.rate")
        whole = case.settings.get("workload")
        if written is None and isinstance(whole, dict):
            written = whole.get("rate")
        if written is not None:
            return float(EVENT_RATE.parse(written))
        return float(getattr(self.base.workload, "rate_per_s", None) or 0)

    def _duration_us(self, case: HuntCase) -> int:
        written = case.settings.get("duration")
        return int(DURATION.parse(written)) if written is not None else self.base.duration_us


def _with(case: HuntCase, path: str, value: object) -> HuntCase:
    settings = {**case.settings, path: value}
    ordered = sorted(settings.items(), key=lambda item: (item[0].count("."), item[0]))
    return replace(case, settings=dict(ordered))


def _with_one(case: HuntCase, at: int, each: HuntDisturbance) -> HuntCase:
    return replace(case, disturbances=(*case.disturbances[:at], each, *case.disturbances[at + 1 :]))


def _pieces(some: Sequence[HuntDisturbance], parts: int) -> list[tuple[HuntDisturbance, ...]]:
    ends = [len(some) * part // parts for part in range(parts + 1)]
    return [tuple(some[low:high]) for low, high in pairwise(ends) if high > low]


def _without(
    some: Sequence[HuntDisturbance], piece: Sequence[HuntDisturbance]
) -> tuple[HuntDisturbance, ...]:
    return tuple(each for each in some if each not in piece)
