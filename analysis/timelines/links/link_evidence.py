"""Determines the links on which an expectation depends, and which of them are unproven in the relevant
period.
"""

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.timelines.links.fidelity import UNPROVEN
from analysis.timelines.links.periods import Json, LinkDirection
from analysis.timelines.run_metadata import RunMetadata
from topologies.routes import Hop

APART = ("verdict", "agreement")
"""Sections that depend on no link."""


@dataclass(frozen=True, slots=True)
class LinkEvidence:
    """Rows of `schemas.FIDELITY`, and the routes of each fault's streams (`recovery_table.routes`).

    silent: the regions between which streams stay stalled, as hops. No packets between these at the end are
    the clients' fault.
    """

    fidelity: Sequence[Json]
    routes: Sequence[Json]
    metadata: RunMetadata
    silent: Collection[Hop] = ()

    def unproven(self, path: str) -> list[str]:
        """Return the unproven periods of the links that this path of summary.json depends on, as text."""
        rows = [row for row in self.fidelity if row["verdict"] == UNPROVEN and not self._is_silent(row)]
        section, *rest = path.split(".")
        if section in APART or (section == "fidelity" and rest[:1] != ["links"]):
            return []
        if section == "fidelity":
            rows = [row for row in rows if row["link"] in rest]
        elif section == "recovery":
            rows = self._of_fault(rest[0] if rest else "", rows)
        else:  # a direction of a parallel link that no route uses matters to nothing else
            used = set(self.metadata.link_of.values())
            rows = [row for row in rows if (row["link"], row["direction"]) in used]
        return [f"{period_text(row)}: {row['reason']}" for row in rows]

    def _is_silent(self, row: Json) -> bool:
        links = {self.metadata.link_of[hop][0] for hop in self.metadata.crossed(self.silent)}
        return row["link"] in links and row["to_s"] is None and not row["packets"]

    def _of_fault(self, name: str, rows: list[Json]) -> list[Json]:
        fault = next((fault for fault in self.metadata.applied_faults if fault.name == name), None)
        if fault is None:
            return []
        after_ns = self.metadata.next_fault_ns(fault)
        from_s = self.metadata.seconds(fault.t_ns)
        to_s = None if after_ns is None else self.metadata.seconds(after_ns)
        directions = {self.metadata.link_of[hop] for hop in fault.hops} | self._routes(name)
        return [
            row
            for row in rows
            if (row["link"], row["direction"]) in directions
            and (row["to_s"] is None or row["to_s"] > from_s)
            and (to_s is None or row["from_s"] is None or row["from_s"] < to_s)
        ]

    def _routes(self, fault: str) -> set[LinkDirection]:
        """Return the link directions of the old and new paths of the streams that the fault affected."""
        found: set[LinkDirection] = set()
        for row in self.routes:
            if row["fault"] == fault:
                for path in (row["old_way"], row["new_way"]):
                    regions = (path or "").split()
                    for hop in itertools.pairwise(regions):
                        found |= {self.metadata.link_of[each] for each in self.metadata.routes.get(hop, ())}
        return found


def period_text(row: Mapping[str, Any]) -> str:
    """Return the link, direction and start of a row's period, as text."""
    since = "" if row["from_s"] is None else f" from {row['from_s']:.1f} s on"
    selected = f" {row['selected']}" if row.get("selected") else ""
    return f"link {row['link']} {row['direction']}{selected}{since}"
