"""Tasks that read packets: a host's messages become its events, a link's packets its behaviour."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analysis.arrays import Ints, ints
from analysis.schemas import MESSAGES
from analysis.timelines import events, schemas, throughput
from analysis.timelines.coded_texts import read_coded_groups
from analysis.timelines.links import fidelity, tcp_outages, traffic, wan
from analysis.timelines.links.traversals import PACKET_COLUMNS, LinkTraversal, sides
from analysis.timelines.recovering import failover_events
from analysis.timelines.run_metadata import Host, RunMetadata
from analysis.timelines.run_window import outside
from analysis.timelines.tasks.results import concatenate_results, write
from experiments.declared import Trait


@dataclass(frozen=True, slots=True)
class MessagesToEvents:
    """Converts one host's file of the table of messages to a file of events."""

    messages: Path
    folder: Path
    metadata: RunMetadata

    def __call__(self) -> dict[str, pa.Table]:
        """Write the events. Returns sums of arrivals, and the subscriptions of a proxy."""
        parts = self._parts()
        if not parts:
            return {}
        host = self.metadata.hosts[self._read(parts[0][:1], ["host"]).column("host")[0].as_py()]
        seen: list[dict[str, pa.Table]] = []
        t_ns: list[Ints] = []

        def read() -> Iterator[pa.Table]:
            for part in parts:
                messages = self._read(part, events.MESSAGE_COLUMNS)
                t_ns.append(ints(messages, "t_first_ns"))
                seen.append(self._of_part(messages, t_ns[-1], host))
                yield messages

        found = events.from_messages(read(), host, self.metadata)
        write(found, self.folder / f"{host.name}.parquet", schemas.EVENTS)
        return {
            **({} if self.metadata.by_host else {"arrivals": throughput.arrivals(found, self.metadata)}),
            "outside": outside(host.name, "messages", np.concatenate(t_ns), self.metadata.window),
            **concatenate_results(seen),
        }

    def _parts(self) -> list[list[int]]:
        """Return the file's row groups in independent parts; a single part if the host forwards messages."""
        written = pq.read_metadata(self.messages)
        groups = [number for number in range(written.num_row_groups) if written.row_group(number).num_rows]
        within = written.schema.names.index("within")
        passes_on = any(
            (stats := written.row_group(number).column(within).statistics) is None or stats.num_values
            for number in groups
        )
        return [groups] if passes_on and groups else [[number] for number in groups]

    def _read(self, groups: Sequence[int], columns: Sequence[str]) -> pa.Table:
        return read_coded_groups(self.messages, groups, columns, MESSAGES)

    def _of_part(self, messages: pa.Table, t_ns: Ints, host: Host) -> dict[str, pa.Table]:
        within = messages.filter(pa.array(self.metadata.window.holds(t_ns)))
        found = {"wan_messages": wan.messages_over_links(within, host, self.metadata)}
        if self.metadata.has(host, Trait.SERVER):
            found["subscriptions"] = failover_events.subscriptions(within, self.metadata)
        return found


def measure_link(
    packets_file: Path, traversals: Sequence[LinkTraversal], metadata: RunMetadata
) -> dict[str, pa.Table]:
    """Measure both directions of one link, from the captures on both sides of its emulator.

    Returns their delay, loss and rate from all packets, and bytes per bin of system and traffic.
    """
    wanted = sorted({name for traversal in traversals for name in (traversal.near, traversal.far)})
    chosen = pc.field("capture").isin(wanted)
    packets = pq.read_table(packets_file, columns=list(PACKET_COLUMNS), filters=chosen)
    measured, carried, others, misdated, both = [], [], [], [], []
    for traversal in traversals:
        near, far = sides(packets, traversal)
        both.append([traffic.system_packets(side, metadata) for side in (near, far)])
        measured.append(fidelity.measure_direction(traversal.direction, near, far, metadata))
        system = traffic.system_packets(far, metadata)
        carried.append(throughput.wire(traversal.direction, system, metadata))
        others.append(traffic.carried_traffic(traversal.direction, far, metadata))
        misdated += [
            outside(capture, "packets", ints(seen, "t_ns"), metadata.window)
            for capture, seen in ((traversal.near, near), (traversal.far, far))
        ]
    directions = [traversal.direction for traversal in traversals]
    all_near, all_far = ([pair[side] for pair in both] for side in (0, 1))
    return {
        "fidelity": pa.concat_tables(measured),
        "tcp_outages": tcp_outages.measure(directions, all_near, all_far, metadata),
        "wire": pa.concat_tables(carried),
        "traffic": pa.concat_tables(others),
        "outside": pa.concat_tables(misdated),
    }
