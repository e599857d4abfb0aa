"""Wrong clocks of processes: each fault's step and drift, added up. Pure."""

from collections import defaultdict
from collections.abc import Iterable

from experiments.planned.changes import Change, ProcessAction, ProcessChange
from node.core.wrong_clock import WrongClock


def wrong_clocks(changes: Iterable[Change]) -> frozenset[str]:
    """Return the processes whose clocks become wrong at some time."""
    each_change = (each for each in changes if isinstance(each, ProcessChange))
    return frozenset(each.process for each in each_change if each.action is ProcessAction.CLOCK)


class Clocks:
    """The current clocks of processes. Times are of one right clock, which the caller chooses."""

    def __init__(self) -> None:
        self._faults: defaultdict[str, dict[str, WrongClock]] = defaultdict(dict)

    def change(self, change: ProcessChange, now_us: int) -> WrongClock:
        """Begin or end a fault of a clock now; return the resulting clock."""
        faults = self._faults[change.process]
        if change.action is ProcessAction.CLOCK:
            faults[change.rule or ""] = WrongClock(change.offset_us, change.drift_ppm, now_us)
        else:
            faults.pop(change.rule or "", None)
        return self.current(change.process, now_us)

    def current(self, process: str, now_us: int) -> WrongClock:
        """Return a process's clock from now on."""
        faults = self._faults[process].values()
        return WrongClock(
            sum(each.ahead_us(now_us) for each in faults), sum(each.drift_ppm for each in faults), now_us
        )
