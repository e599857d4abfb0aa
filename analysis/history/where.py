"""Which of a history's runs are meant."""

from collections.abc import Collection
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from analysis.history.schemas import NIGHT


@dataclass(frozen=True, slots=True)
class Where:
    """Conditions that must all hold; None asks nothing.

    since, until: nights, both included. verdicts: one of them. valid: what its fidelity says.
    """

    suite: str | None = None
    entry: str | None = None
    since: str | None = None
    until: str | None = None
    run: str | None = None
    experiment: str | None = None
    verdicts: Collection[str] | None = None
    valid: bool | None = None

    def night(self, night: str) -> bool:
        """Whether runs of this night may be meant."""
        return (self.since is None or night >= self.since) and (self.until is None or night <= self.until)

    def of_runs(self, runs: pa.Table) -> pa.Table:
        """The rows of the table `runs` that are meant."""
        chosen = runs
        equal = {"suite": self.suite, "entry": self.entry, "run": self.run, "experiment": self.experiment}
        for column, value in (*equal.items(), ("valid", self.valid)):
            if value is not None:
                chosen = chosen.filter(pc.equal(chosen[column], value))
        if self.verdicts is not None:
            chosen = chosen.filter(pc.is_in(chosen["verdict"], pa.array(sorted(self.verdicts), pa.string())))
        return chosen


EVERYTHING = Where()


def of_these(rows: pa.Table, runs: pa.Table) -> pa.Table:
    """The rows whose night and run stand in the table `runs`."""
    if rows.num_rows == 0:
        return rows
    wanted = pc.binary_join_element_wise(runs[NIGHT], runs["run"], "/").combine_chunks()
    mine = pc.binary_join_element_wise(rows[NIGHT], rows["run"], "/")
    return rows.filter(pc.is_in(mine, wanted))
