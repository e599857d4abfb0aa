"""How often a finding was reproduced, by backend, as a rate with an interval, in `replays.json`."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from analysis.intervals import wilson_interval
from experiments.records.json_files import read_json, write_json
from topologies.errors import InputError

REPLAYS = "replays.json"


@dataclass(frozen=True, slots=True)
class ReplayCounts:
    """The number of runs, and the number of runs that broke."""

    runs: int = 0
    broke: int = 0

    def with_one(self, *, broke: bool) -> "ReplayCounts":
        """Return the counts after one more run."""
        return ReplayCounts(self.runs + 1, self.broke + broke)

    @property
    def text(self) -> str:
        """The rate and its interval as a sentence."""
        low, high = wilson_interval(self.broke, self.runs)
        runs = f"{self.runs} run{'s' if self.runs != 1 else ''}"
        return f"broke in {self.broke} of {runs}: a rate of {low:.0%} to {high:.0%} (Wilson, 95 %)"


def read_counts(folder: Path) -> dict[str, ReplayCounts]:
    """Return the counts so far by backend. Raises InputError."""
    path = folder / REPLAYS
    if not path.is_file():
        return {}
    found = {}
    for backend, counts in read_json(path).items():
        match counts:
            case {"runs": int(runs), "broke": int(broke)} if 0 <= broke <= runs:
                found[backend] = ReplayCounts(runs, broke)
            case _:
                raise InputError(str(path), None, backend, "should have `runs`, and how many of them `broke`")
    return found


def write_counts(folder: Path, counts: Mapping[str, ReplayCounts]) -> None:
    """Write the counts. Raises OSError."""
    content = {name: {"runs": each.runs, "broke": each.broke} for name, each in counts.items()}
    write_json(folder / REPLAYS, content)
