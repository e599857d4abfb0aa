"""The tables of a run that people can ask: their columns, and where their rows are.

Most are Parquet files of the analysis; some come from run.json. `cutset schema tables` prints them all.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from analysis import schemas
from analysis.columns import BIGINT, BOOLEAN, DOUBLE, STRING, meaning, table_schema
from analysis.sql import records
from analysis.timelines import schemas as timelines
from experiments.records.run_record import RunRecord
from experiments.records.rundir import RunDirectory

RowsOf = Callable[[RunDirectory, RunRecord], records.Rows]


@dataclass(frozen=True, slots=True)
class Table:
    """A table: what a row is, its columns, and for those from run.json, what gives the rows of a run."""

    row: str
    columns: pa.Schema
    rows: RowsOf | None = None

    def of(self, run: RunDirectory, record: RunRecord) -> pa.Table:
        """The rows of one run of a table from run.json."""
        assert self.rows is not None, "a table of the analysis is read from its files"
        return pa.Table.from_pylist(list(self.rows(run, record)), self.columns)


TABLES: Final[Mapping[str, Table]] = {
    "runs": Table(
        "a run, with each setting as a column of its own: `parameter_...` of its system, `workload_...`",
        table_schema(
            ("path", STRING, False, "of its directory"),
            ("experiment", STRING, False, "name"),
            ("system", STRING, False, "name"),
            ("topology", STRING, False, "name"),
            ("seed", STRING, False, "decimal digits: it may be larger than a number of SQL"),
            ("links", STRING, False, "what carried them: relay, netem or simulator"),
            ("commit", STRING, True, "Cutset's"),
            ("outcome", STRING, True, "'completed', 'interrupted' or 'crashed'"),
            ("verdict", STRING, True, "'passed', 'failed'...; null: not analysed"),
            ("valid", BOOLEAN, True, "whether the network did what was asked; null: not analysed"),
            ("started_ns", BIGINT, True, "when the command began"),
            ("zero_ns", BIGINT, True, "time 0"),
            ("ended_ns", BIGINT, True, "when it was over"),
            ("duration_s", DOUBLE, False, "for which publishers publish, s"),
            ("regions", BIGINT, False, "so many"),
            ("processes", BIGINT, False, "so many"),
            ("problems", pa.list_(STRING), False, "of the testbed or of nodes, a line each"),
        ),
        records.runs,
    ),
    "hosts": Table(
        "a host",
        table_schema(
            ("host", STRING, False, "name, as r2-proxy-0"),
            ("region", STRING, False, "name"),
            ("role", STRING, False, "of its process; 'gateway'; 'traffic-host'"),
            ("index", BIGINT, False, "among the hosts of its region and role"),
            ("address", STRING, False, "on its LAN"),
            ("machine", STRING, True, "that it was on, of a run on several"),
        ),
        records.hosts,
    ),
    "processes": Table(
        "a process, from one of its starts to its end",
        table_schema(
            ("process", STRING, False, "name, as r2/proxy-0"),
            ("host", STRING, False, "name"),
            ("region", STRING, True, "name"),
            ("role", STRING, True, "name"),
            ("life", BIGINT, False, "counts its starts, from 0"),
            ("exit_code", BIGINT, True, "null: it ended by a signal, or its end was not seen"),
            ("exit_signal", BIGINT, True, "null: it ended by itself, or its end was not seen"),
            ("exit_ns", BIGINT, True, "when it ended"),
            ("exit_expected", BOOLEAN, True, "whether it was told to"),
            ("processor_s", DOUBLE, True, "of processors, since time 0 or its start, s"),
        ),
        records.processes,
    ),
    "streams": Table(
        "a stream",
        table_schema(
            ("stream", BIGINT, False, "number"),
            ("name", STRING, False, "as r2"),
            ("region", STRING, False, "that owns it"),
            ("publishers", pa.list_(STRING), False, "regions, or single processes"),
        ),
        records.streams,
    ),
    "links": Table(
        "a direction of a link: as it was configured at first, and what it counted",
        table_schema(
            ("link", STRING, False, "as r2-r3, or lan-r2-proxy-0"),
            ("direction", STRING, False, "'forward' or 'backward'"),
            ("kind", STRING, False, "'wan' or 'lan'"),
            ("origin", STRING, False, "region or host from which it leads"),
            ("target", STRING, False, "region or host to which it leads"),
            ("delay_ms", DOUBLE, False, "one way, ms"),
            ("jitter_ms", DOUBLE, False, "half-width around the delay, ms"),
            ("loss", DOUBLE, False, "probability"),
            ("rate_bits_per_s", BIGINT, True, "null: no limit"),
            ("queue_packets", BIGINT, True, "segments that may wait; null: computed from rate and delay"),
            ("frames", BIGINT, True, "segments that left it; null: not counted"),
            ("bytes", BIGINT, True, "that left it"),
            ("dropped_loss", BIGINT, True, "segments, by chance"),
            ("dropped_queue", BIGINT, True, "segments, at the queue's limit"),
            ("dropped_cut", BIGINT, True, "segments, while it was cut"),
            ("late_p99_us", DOUBLE, True, "how late frames left, us; null: the kernel does not say"),
        ),
        records.links,
    ),
    "faults": Table(
        "a fault",
        table_schema(
            ("fault", STRING, False, "name"),
            ("kind", STRING, False, "cut, restore, kill..."),
            ("target", STRING, False, "as r2-r3, or r2/proxy-0"),
            ("at_s", DOUBLE, False, "when it was to be, since time 0, s"),
            ("until_s", DOUBLE, True, "when its effect on links was to end, since time 0, s; null: never"),
            ("from_ns", BIGINT, True, "when it took hold; null: it did not"),
            ("to_ns", BIGINT, True, "until when its effect lasted: the end of the run, if nothing ended it"),
        ),
        records.faults,
    ),
    "captures": Table("a capture file", schemas.CAPTURES),
    "packets": Table(
        "a packet, once for every capture that has it: its host's, and at both sides of each link",
        schemas.PACKETS,
    ),
    "messages": Table("a message, once for every host that saw it", schemas.MESSAGES),
    "transfers": Table("a message from a process to another, with what became of it", schemas.TRANSFERS),
    "decoding": Table("a direction of a TCP connection, and how far it could be decoded", schemas.DECODING),
    "gaps": Table("bytes of a connection that a capture does not have", schemas.GAPS),
    "events": Table("a batch of events at a host, in a direction", timelines.EVENTS),
    "deliveries": Table("a stream at a client: what it got of what was published", timelines.DELIVERIES),
    "publishers": Table("a publisher of a stream", timelines.PUBLISHERS),
    "confirmations": Table("a client with subscriptions", timelines.CONFIRMATIONS),
    "selectivity": Table("a number of subscriptions or clients that events are for", timelines.SELECTIVITY),
    "measures": Table("a value that a system measured itself", timelines.MEASURES),
    "throughput": Table("a bin of 200 ms of a region, a stream or a link", timelines.THROUGHPUT),
    "latency": Table("a bin of 200 ms of an origin", timelines.LATENCY),
    "recovery": Table("a fault, for a stream at a client", timelines.RECOVERY),
    "convergence": Table("a stream at a client, after the last change of the run", timelines.CONVERGENCE),
    "chains": Table("a configuration of a region's chain", timelines.CHAINS),
    "wan": Table("a direction of a link between regions: what crossed it", timelines.WAN),
    "traffic": Table("a bin of 200 ms of other people's traffic on a link", timelines.TRAFFIC),
    "fidelity": Table("a direction of a link, for as long as it was configured so", timelines.FIDELITY),
}
"""By name, in the order in which they are shown: what the run was, its packets, what they come to."""

RUN: Final = ("run", "name of the run; of one of a sweep's, the sweep's before it")
"""The first column of every table."""
T_NS: Final = ("t_ns", "when the bin begins")
"""The last column of tables with a `start_s`."""


def has_bins(columns: pa.Schema) -> bool:
    """Whether rows are bins on the run's own time, and get their CLOCK_REALTIME as well."""
    return "start_s" in columns.names


def described() -> str:
    """All tables with their columns, types and meanings, as Markdown."""
    parts = [_HEAD]
    for name, table in TABLES.items():
        own = [(each.name, _type(each), meaning(each)) for each in table.columns]
        bins = [(T_NS[0], "int64", T_NS[1])] if has_bins(table.columns) else []
        rows = [(RUN[0], "string", RUN[1]), *own, *bins]
        lines = "\n".join(f"| `{column}` | {kind} | {meant} |" for column, kind, meant in rows)
        parts.append(f"## {name}\n\nA row is {table.row}.\n\n{_COLUMNS}\n{lines}\n")
    return "\n".join(parts)


_COLUMNS = "| column | type | |\n| --- | --- | --- |"
_HEAD = """\
# Tables

What `cutset sql` answers from; `cutset schema tables` prints it. Columns that end in `_ns` are nanoseconds of
CLOCK_REALTIME unless they say otherwise. Null is what could not be measured, or what a row has not.
"""


def _type(field: pa.Field) -> str:
    kind = str(field.type).replace("|", "\\\\|")
    return kind + (", or null" if field.nullable else "")
