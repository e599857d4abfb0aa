"""The SQL tables of a run: their columns, and the source of their rows.

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
class SqlTable:
    """A table. row: the meaning of a row. rows: for tables from run.json, the function that yields them."""

    row: str
    columns: pa.Schema
    rows: RowsOf | None = None

    def rows_of_run(self, run: RunDirectory, record: RunRecord) -> pa.Table:
        """Return the rows of one run, for a table from run.json."""
        assert self.rows is not None, "a table of the analysis is read from its files"
        return pa.Table.from_pylist(list(self.rows(run, record)), self.columns)


TABLES: Final[Mapping[str, SqlTable]] = {
    "runs": SqlTable(
        "a run, with a column for each setting: `parameter_...` of its system, `workload_...`",
        table_schema(
            ("path", STRING, False, "of its directory"),
            ("experiment", STRING, False, "name"),
            ("system", STRING, False, "name"),
            ("topology", STRING, False, "name"),
            ("seed", STRING, False, "decimal digits: it may exceed SQL's integers"),
            ("links", STRING, False, "their emulation: relay, netem or simulator"),
            ("commit", STRING, True, "Cutset's"),
            ("outcome", STRING, True, "'completed', 'interrupted' or 'crashed'"),
            ("verdict", STRING, True, "'passed', 'failed'...; null: not analysed"),
            ("valid", BOOLEAN, True, "whether the network behaved as configured; null: not analysed"),
            ("started_ns", BIGINT, True, "when the command began"),
            ("zero_ns", BIGINT, True, "time 0"),
            ("ended_ns", BIGINT, True, "when the run ended"),
            ("duration_s", DOUBLE, False, "for which publishers publish, s"),
            ("regions", BIGINT, False, "number of regions"),
            ("processes", BIGINT, False, "number of processes"),
            ("problems", pa.list_(STRING), False, "of the testbed or of nodes, one line each"),
        ),
        records.runs,
    ),
    "hosts": SqlTable(
        "a host",
        table_schema(
            ("host", STRING, False, "name, as r2-proxy-0"),
            ("region", STRING, False, "name"),
            ("role", STRING, False, "of its process; 'gateway'; 'traffic-host'"),
            ("index", BIGINT, False, "among the hosts of its region and role"),
            ("address", STRING, False, "on its LAN"),
            ("machine", STRING, True, "the machine of the host, if the run used several"),
        ),
        records.hosts,
    ),
    "processes": SqlTable(
        "a process generation: a process from one of its starts to its end",
        table_schema(
            ("process", STRING, False, "name, as r2/proxy-0"),
            ("host", STRING, False, "name"),
            ("region", STRING, True, "name"),
            ("role", STRING, True, "name"),
            ("life", BIGINT, False, "number of the process generation, from 0"),
            ("exit_code", BIGINT, True, "null: ended by a signal, or its end was not seen"),
            ("exit_signal", BIGINT, True, "null: ended by itself, or its end was not seen"),
            ("exit_ns", BIGINT, True, "when it ended"),
            ("exit_expected", BOOLEAN, True, "whether the testbed requested its end"),
            ("processor_s", DOUBLE, True, "CPU time since time 0 or its start, s"),
        ),
        records.processes,
    ),
    "streams": SqlTable(
        "a stream",
        table_schema(
            ("stream", BIGINT, False, "number"),
            ("name", STRING, False, "as r2"),
            ("region", STRING, False, "the region that owns it"),
            ("publishers", pa.list_(STRING), False, "regions, or single processes"),
        ),
        records.streams,
    ),
    "links": SqlTable(
        "a direction of a link: its initial configuration and its counters",
        table_schema(
            ("link", STRING, False, "as r2-r3, or lan-r2-proxy-0"),
            ("direction", STRING, False, "'forward' or 'backward'"),
            ("kind", STRING, False, "'wan' or 'lan'"),
            ("origin", STRING, False, "region or host at its beginning"),
            ("target", STRING, False, "region or host at its end"),
            ("delay_ms", DOUBLE, False, "one way, ms"),
            ("jitter_ms", DOUBLE, False, "half-width around the delay, ms"),
            ("loss", DOUBLE, False, "probability"),
            ("rate_bits_per_s", BIGINT, True, "null: no limit"),
            ("queue_packets", BIGINT, True, "segments that may wait; null: computed from rate and delay"),
            ("frames", BIGINT, True, "segments that left it; null: not counted"),
            ("bytes", BIGINT, True, "bytes that left it"),
            ("dropped_loss", BIGINT, True, "segments dropped at random"),
            ("dropped_queue", BIGINT, True, "segments dropped at the queue's limit"),
            ("dropped_cut", BIGINT, True, "segments dropped while it was cut"),
            ("late_p99_us", DOUBLE, True, "how late frames left, us; null: not measured by the kernel"),
        ),
        records.links,
    ),
    "faults": SqlTable(
        "a fault",
        table_schema(
            ("fault", STRING, False, "name"),
            ("kind", STRING, False, "cut, restore, kill..."),
            ("target", STRING, False, "as r2-r3, or r2/proxy-0"),
            ("at_s", DOUBLE, False, "planned time since time 0, s"),
            ("until_s", DOUBLE, True, "planned end of its effect on links since time 0, s; null: never"),
            ("from_ns", BIGINT, True, "when it was applied; null: never"),
            ("to_ns", BIGINT, True, "when its effect ended; at the latest the end of the run"),
        ),
        records.faults,
    ),
    "captures": SqlTable("a capture file", schemas.CAPTURES),
    "packets": SqlTable(
        "a packet, once for every capture that has it: those of hosts, and of both sides of each link",
        schemas.PACKETS,
    ),
    "messages": SqlTable("a message, once for every host that saw it", schemas.MESSAGES),
    "transfers": SqlTable(
        "a message from one process to another, or without a run a packet from one capture to another",
        schemas.TRANSFERS,
    ),
    "decoding": SqlTable(
        "a direction of a TCP connection, and how far it could be decoded", schemas.DECODING
    ),
    "gaps": SqlTable("a range of a connection's or datagram's bytes missing from a capture", schemas.GAPS),
    "connections": SqlTable("a TCP connection in a capture", timelines.CONNECTIONS),
    "silences": SqlTable("a time without progress of a TCP connection in a capture", timelines.SILENCES),
    "clocks": SqlTable("a clock during a period of a steady rate", timelines.CLOCKS, records.clocks),
    "memberships": SqlTable("a time for which a host had joined a multicast group", schemas.MEMBERSHIPS),
    "events": SqlTable("a batch of events at a host, in a direction", timelines.EVENTS),
    "deliveries": SqlTable("a stream at a client: published and received events", timelines.DELIVERIES),
    "publishers": SqlTable("a publisher of a stream", timelines.PUBLISHERS),
    "confirmations": SqlTable("a client with subscriptions", timelines.CONFIRMATIONS),
    "selectivity": SqlTable("a number of subscriptions or clients that events match", timelines.SELECTIVITY),
    "measures": SqlTable("a value that a system measured itself", timelines.MEASURES),
    "throughput": SqlTable(
        "a bin of a region, a stream or a link, or without a run of a capture or a pair of addresses",
        timelines.THROUGHPUT,
    ),
    "latency": SqlTable("a bin of 200 ms of an origin", timelines.LATENCY),
    "recovery": SqlTable("a fault, for a stream at a client", timelines.RECOVERY),
    "convergence": SqlTable("a stream at a client, after the last change of the run", timelines.CONVERGENCE),
    "chains": SqlTable("a configuration of a region's chain", timelines.CHAINS),
    "wan": SqlTable("a direction of a link between regions, and its traffic", timelines.WAN),
    "traffic": SqlTable("a bin of 200 ms of background traffic on a link", timelines.TRAFFIC),
    "tcp_outages": SqlTable(
        "a TCP connection across a link that failed and came back", timelines.TCP_OUTAGES
    ),
    "fidelity": SqlTable("a direction of a link during one configuration", timelines.FIDELITY),
}
"""Tables by name, in display order: the run, its packets, the results of the analysis."""

RUN: Final = ("run", "name of the run, after the sweep's name if it is part of one")
"""The first column of every table."""
T_NS: Final = ("t_ns", "start of the bin")
"""The last column of tables with a `start_s`."""


def has_bins(columns: pa.Schema) -> bool:
    """Return whether rows are bins of the run's own time, and get a column of CLOCK_REALTIME too."""
    return "start_s" in columns.names


def tables_as_markdown() -> str:
    """Return all tables with their columns, types and meanings, as Markdown."""
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

The tables of `cutset sql`, as printed by `cutset schema tables`. Columns that end in `_ns` are nanoseconds of
CLOCK_REALTIME unless stated otherwise. Null means not measured, or not applicable to the row.
"""


def _type(field: pa.Field) -> str:
    kind = str(field.type).replace("|", "\\\\|")
    return kind + (", or null" if field.nullable else "")
