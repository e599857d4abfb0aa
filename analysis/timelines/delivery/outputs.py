"""Findings of a run whose hosts' output is still in memory: for runs that leave no files.

The findings on deliveries are the same as the analysis of a run directory makes from the hosts' files
(`analysis.timelines.tasks.records`), by the same functions.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa

from analysis.arrays import ints, rows
from analysis.timelines import schemas
from analysis.timelines.delivery import deliveries
from analysis.timelines.delivery.collecting import marks_in
from analysis.timelines.delivery.confirmations import check_confirmations, planned_subscriptions
from analysis.timelines.delivery.content import ContentRecords, content_of
from analysis.timelines.delivery.delivery_records import DELIVERED_KINDS, as_table, host_records
from analysis.timelines.measures import measures_in
from analysis.timelines.run_metadata import RunMetadata
from analysis.timelines.summary import RunFindings
from analysis.timelines.verification import check_order
from experiments.declared import Trait
from experiments.planned.plan import Plan
from node.core.content.content_measures import EVENT, INTEREST
from node.core.deliveries import RecordKind


class RecordedOutput(Protocol):
    """The content of a host's files, without their headers."""

    @property
    def records(self) -> bytes | bytearray:
        """Records of deliveries."""

    @property
    def marks(self) -> bytes | bytearray:
        """Marks of collecting events."""

    @property
    def measures(self) -> bytes | bytearray:
        """The process's own measurements."""


Outputs = Mapping[str, RecordedOutput]
"""The output of each host."""


def findings_of(outputs: Outputs, plan: Plan, metadata: RunMetadata) -> RunFindings:
    """Return deliveries, publishers and confirmations. Raises AnalysisError if the records do not fit the
    plan.
    """
    drivers, clients = metadata.having(Trait.PUBLISHER), metadata.clients
    published, got = _table(outputs, drivers), _table(outputs, clients)
    content = _content(outputs, metadata)
    marks = marks_in(bytes(outputs[name].marks) for name in drivers) if metadata.marked else None
    planned = planned_subscriptions(plan, metadata)
    asked = {name: planned.get(name, ()) for name in clients} if planned else {}
    orders = [check_order(name, _table(outputs, [name])) for name in drivers]
    return RunFindings(
        deliveries=deliveries.delivery_table(clients, published, got, metadata, marks, content=content),
        publishers=pa.concat_tables([schemas.PUBLISHERS.empty_table(), *orders]),
        confirmations=check_confirmations(asked, got, metadata, content),
    )


def last_published_ns(outputs: Outputs, host: str) -> int | None:
    """Return when a host last published or received an acknowledgement; None if it never did."""
    table = _table(outputs, [host])
    kinds = (RecordKind.PUBLISHED, RecordKind.ACKNOWLEDGED)
    times = np.concatenate([ints(rows(table, kind=int(kind)), "t_ns") for kind in kinds])
    return int(times.max()) if len(times) else None


def sequence_numbers(outputs: Outputs, host: str, stream: int, *, placeholders: bool) -> frozenset[int]:
    """Return the numbers of a stream delivered to a client. placeholders: whether placeholders count, too."""
    table = rows(_table(outputs, [host]), stream=stream)
    kinds = DELIVERED_KINDS if placeholders else (RecordKind.DELIVERED,)
    found = set[int]()
    for kind in kinds:
        mine = rows(table, kind=int(kind))
        reach = np.maximum(ints(mine, "count"), ints(mine, "covered"))
        for first, many in zip(ints(mine, "first_seq").tolist(), reach.tolist(), strict=True):
            found.update(range(first, first + many))
    return frozenset(found)


def _table(outputs: Outputs, hosts: Sequence[str]) -> pa.Table:
    return as_table([host_records(name, outputs[name].records) for name in hosts])


def _content(outputs: Outputs, metadata: RunMetadata) -> ContentRecords | None:
    if metadata.declared.contract.audience != "content":
        return None
    drivers = metadata.having(Trait.PUBLISHER)
    measured = {
        name: measures_in(name, bytes(outputs[name].measures)) for name in {*drivers, *metadata.clients}
    }
    events = [block for name in drivers for block in measured[name].get(EVENT, ())]
    asked = [(name, measured[name].get(INTEREST, ())) for name in metadata.clients]
    return content_of(metadata.domains, events, asked)
