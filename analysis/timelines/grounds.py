"""Which links an expectation rests on, and which of them are unproven while it does.

What is said of a fault's recovery rests on the links that the fault changed and on those of the routes from
which and to which streams moved, from the fault until the next one. What is said of one link rests on it.
Everything else (events, throughput, latency) rests on every link, all the time: a cut that nothing shows to
have been one proves nothing about events that outlive cuts.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.timelines.facts import Facts
from analysis.timelines.fidelity import UNPROVEN
from analysis.timelines.periods import Json, Way

APART = ("verdict", "agreement")
"""What rests on no link."""


@dataclass(frozen=True, slots=True)
class Grounds:
    """Rows of `schemas.FIDELITY`, and what each fault's streams took for ways: `recovery_table.routes`."""

    fidelity: Sequence[Json]
    routes: Sequence[Json]
    facts: Facts

    def unproven(self, path: str) -> list[str]:
        """The periods of links that this path of summary.json rests on and that are unproven, as text."""
        rows = [row for row in self.fidelity if row["verdict"] == UNPROVEN]
        section, *rest = path.split(".")
        if section in APART or (section == "fidelity" and rest[:1] != ["links"]):
            return []
        if section == "fidelity":
            rows = [row for row in rows if row["link"] in rest]
        elif section == "recovery":
            rows = self._of_fault(rest[0] if rest else "", rows)
        return [f"{place(row)}: {row['reason']}" for row in rows]

    def _of_fault(self, name: str, rows: list[Json]) -> list[Json]:
        fault = next((fault for fault in self.facts.applied_faults if fault.name == name), None)
        if fault is None:
            return []
        after_ns = self.facts.next_fault_ns(fault)
        from_s = self.facts.seconds(fault.t_ns)
        to_s = None if after_ns is None else self.facts.seconds(after_ns)
        ways = {self.facts.link_of[hop] for hop in fault.hops} | self._routes(name)
        return [
            row
            for row in rows
            if (row["link"], row["direction"]) in ways
            and (row["to_s"] is None or row["to_s"] > from_s)
            and (to_s is None or row["from_s"] is None or row["from_s"] < to_s)
        ]

    def _routes(self, fault: str) -> set[Way]:
        """The link directions of the old and new ways of the streams that the fault affected."""
        found: set[Way] = set()
        for row in self.routes:
            if row["fault"] == fault:
                for way in (row["old_way"], row["new_way"]):
                    regions = (way or "").split()
                    for hop in itertools.pairwise(regions):
                        found |= {self.facts.link_of[each] for each in self.facts.routes.get(hop, ())}
        return found


def place(row: Mapping[str, Any]) -> str:
    """Which period of which direction of which link."""
    since = "" if row["from_s"] is None else f" from {row['from_s']:.1f} s on"
    return f"link {row['link']} {row['direction']}{since}"
