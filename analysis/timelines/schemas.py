"""The tables of the timelines and of the steps towards them: one definition of each, for Arrow and Parquet.

Columns ending in `_ns` are CLOCK_REALTIME nanoseconds, those ending in `_s` seconds since time 0 of the run
or, in `RECOVERY`, since the fault's applied time. Null means "could not be measured", and a reason stands
beside it.
"""

import pyarrow as pa

from analysis.columns import BIGINT, BOOLEAN, DOUBLE, INT, STRING, table_schema

BIN_NS = 200_000_000
"""The width of every timeline's bins."""

RECOVERY_TIMES = {
    "switch": "an event published after the fault came",
    "catch_up": "everything published before had come",
    "settled": "events came as fast as before",
    "returned": "the owner was the source again, after a restore",
    "rate_derived": "convergence by rates (RFC 6412)",
    "loss_derived": "convergence by losses (RFC 6412)",
    "connectivity_lost": "loss of connectivity (RFC 6412)",
}
"""What is measured of each pair: `<name>_ns` in PAIRS and in the dataclasses that measure it, `<name>_s` in
RECOVERY and in summary.json (`experiments.records.summary` says what it is called).
"""


# One row per batch, place and direction. 'published': arrived whole at its local proxy, and later
# acknowledged; 'arrived' and 'sent': whole at the host's capture. Empty without captures of hosts.
EVENTS = table_schema(
    ("host", STRING, False, "where it was seen"),
    ("region", STRING, False, "of the host"),
    ("role", STRING, False, "of the host's process"),
    (
        "kind",
        STRING,
        False,
        "'published': whole at its server and acknowledged; 'arrived' or 'sent': whole at the host's capture",
    ),
    ("peer", STRING, True, "host at the other end"),
    ("via", STRING, True, "through which host, if through one"),
    ("stream", INT, False, "number of the stream"),
    ("first_seq", BIGINT, False, "first sequence number of the batch"),
    ("count", BIGINT, False, "sequence numbers, collected ones among them"),
    ("events", BIGINT, False, "of these, the ones that came as events"),
    ("t_ns", BIGINT, False, "when"),
    ("bytes", BIGINT, True, "of the batch"),
)

# One row per record of a deliveries file, as the nodes wrote it (node.core.deliveries).
RECORDS = table_schema(
    ("host", STRING, False),
    ("session", INT, False),  # counts the starts of the process, from 0
    ("position", BIGINT, False),  # of the record in its file
    ("kind", INT, False),
    ("stream", INT, False),
    ("first_seq", BIGINT, False),
    ("count", INT, False),
    ("t_ns", BIGINT, False),
    ("batch_crc", BIGINT, False),
    ("running_crc", BIGINT, False),
    ("covered", BIGINT, False),  # sequence numbers; more than count where events were collected
)

# One row per client and stream: what the client got, held against what the drivers know to be published.
DELIVERIES = table_schema(
    ("client", STRING, False, "host"),
    ("stream", INT, False, "number of the stream"),
    ("published", BIGINT, False, "events that publishers know to be published"),
    ("published_twice", BIGINT, False, "publications under a number of another one"),
    ("delivered", BIGINT, False, "distinct events"),
    ("tombstoned", BIGINT, False, "came as tombstones alone"),
    ("covered", BIGINT, False, "delivered and tombstoned: what is accounted for"),
    ("delivered_while_running", BIGINT, False, "events until the publishers stopped"),
    ("lost", BIGINT, False, "expected in some session, and not accounted for in it"),
    ("unacknowledged", BIGINT, False, "likewise, of publishers that died before they were told"),
    ("duplicated", BIGINT, False, "delivered again within a session, or published twice"),
    ("out_of_order", BIGINT, False, "after a later event of the same session, or of other clients' order"),
    ("stray", BIGINT, False, "that the client was not to get"),
    ("resurrected", BIGINT, False, "delivered after their tombstone, or collected against the rule"),
    ("corrupted", BIGINT, False, "other bytes than were published"),
    (
        "unverified",
        BIGINT,
        False,
        "delivered in other batches than published, so that no CRC could be compared",
    ),
    (
        "duplicated_after",
        pa.list_(BIGINT),
        False,
        "for each instant with faults in order of time: duplicated until the next one",
    ),
    ("out_of_order_after", pa.list_(BIGINT), False, "likewise"),
    ("digest", BIGINT, False, "of the sequence numbers that are accounted for"),
    ("published_digest", BIGINT, False, "of those published"),
)

# What came to a client against the order in which others got it, where all are to get one order.
DISORDER = table_schema(
    ("client", STRING, False),
    ("stream", INT, False),
    ("instant", BIGINT, False),  # the last one with faults before it (`RunMetadata.instants`); -1: none
    ("events", BIGINT, False),
)

# Of each client, what it was to subscribe to by the plan, and what of that was not confirmed in time.
CONFIRMATIONS = table_schema(
    ("client", STRING, False, "host"),
    ("asked", BIGINT, False, "subscriptions by the plan, once for each session that they concern"),
    ("unconfirmed", BIGINT, False, "of these, not confirmed in time"),
    ("wait_max_ns", BIGINT, True, "the longest until a confirmation, ns; null without any"),
)

# Where events are for whoever wants what they are about: how many are for so many.
SELECTIVITY = table_schema(
    ("what", STRING, False, "subscriptions, or clients"),
    ("matched", BIGINT, False, "so many of them an event is for"),
    ("events", BIGINT, False, "so many events are for so many"),
)

# What a system measured itself, a row for each value; and for each name and value of a host its figures.
MEASURES = table_schema(
    ("host", STRING, False, "whose process measured it"),
    ("name", STRING, False, "what was measured"),
    ("value", STRING, False, "its kind, as the system names it"),
    ("t_ns", BIGINT, False, "when"),
    ("number", DOUBLE, False, "what was measured"),
)
MEASURED = table_schema(
    ("name", STRING, False),
    ("value", STRING, False),
    ("count", BIGINT, False),
    ("sum", DOUBLE, False),
    ("min", DOUBLE, False),
    ("max", DOUBLE, False),
    ("last", DOUBLE, False),
    ("last_ns", BIGINT, False),
)

# One row per driver: whether its stream has its events in the order in which it published them.
PUBLISHERS = table_schema(
    ("driver", STRING, False, "host"),
    ("stream", INT, False, "number of the stream"),
    ("published", BIGINT, False, "acknowledged events"),
    ("unordered", BIGINT, False, "of these, numbered before an earlier one of the same publisher"),
    ("published_twice", BIGINT, False, "under a number that this publisher had given before"),
)

# What a place has of a stream according to the packets, in a form that can be compared with `DELIVERIES`.
COVERAGE = table_schema(
    ("host", STRING, False), ("stream", INT, False), ("events", BIGINT, False), ("digest", BIGINT, False)
)

# Sums on the way to `THROUGHPUT`: what arrived in a region, and what a link carried, per bin (counted from
# time 0).
ARRIVALS = table_schema(
    ("region", STRING, False),
    ("source", STRING, True),  # the region from which it came; null where no packet tells
    ("at_client", BOOLEAN, False),  # else at a server
    ("stream", INT, False),
    ("bin", BIGINT, False),
    ("events", BIGINT, False),
    ("bytes", BIGINT, True),
)
# By how many clients a stream was followed from one bin to another, both included.
FOLLOWED = table_schema(
    ("stream", INT, False),
    ("first_bin", BIGINT, False),
    ("last_bin", BIGINT, False),
    ("clients", BIGINT, False),
)
WIRE = table_schema(
    ("link", STRING, False),
    ("direction", STRING, False),
    ("bin", BIGINT, False),
    ("bytes", BIGINT, False),
)

# What a link carried of other people's traffic, per entry and bin, from its far side; `bytes` of WIRE leave
# that out.
TRAFFIC = table_schema(
    ("name", STRING, False, "of the entry"),
    ("link", STRING, False, "as r2-r3"),
    ("direction", STRING, False, "'forward' or 'backward'"),
    ("bin", BIGINT, False, "counted from time 0, of 200 ms"),
    ("packets", BIGINT, False, "segments"),
    ("bytes", BIGINT, False, "on the wire"),
    ("payload_bytes", BIGINT, False, "of its load, towards its receiver, once"),
)

# What crossed links between regions: messages by host, copies of events by stream, and both together.
WAN_MESSAGES = table_schema(
    ("link", STRING, False),
    ("direction", STRING, False),
    ("messages", BIGINT, False),
    ("bytes", BIGINT, False),  # of messages, without headers of packets
)
WAN_COPIES = table_schema(
    ("link", STRING, False),
    ("direction", STRING, False),
    ("stream", INT, False),
    ("copies", BIGINT, False),  # of all events
    ("distinct", BIGINT, False),  # events
    ("most", BIGINT, False),  # copies of one event
)
WAN = table_schema(
    ("link", STRING, False, "as r2-r3"),
    ("direction", STRING, False, "'forward' or 'backward'"),
    ("messages", BIGINT, False, "that crossed it"),
    ("bytes", BIGINT, False, "of messages, without headers of packets"),
    ("copies", BIGINT, False, "of all events that crossed it"),
    ("distinct", BIGINT, False, "events that crossed it"),
    ("most", BIGINT, False, "copies of one event"),
)

# What a host or a capture dates outside of the run, which no table laid out over time has a place for.
OUTSIDE = table_schema(
    ("place", STRING, False),
    ("what", STRING, False),  # 'messages' | 'packets' | 'records'
    ("count", BIGINT, False),
    ("of", BIGINT, False),
    ("first_ns", BIGINT, False),
    ("last_ns", BIGINT, False),
)

# Configurations of the regions' chains, as their configuration services decided them.
CHAINS = table_schema(
    ("region", STRING, False, "whose configuration it is"),
    ("at_s", DOUBLE, False, "since time 0, s"),
    ("number", BIGINT, False, "of the configuration"),
    ("chain", pa.list_(STRING), False, "processes from head to tail"),
    ("joining", STRING, True, "process that is coming in"),
)

# SUBSCRIBE as proxies sent it.
SUBSCRIPTIONS = table_schema(
    ("host", STRING, False), ("dst", STRING, False), ("stream", INT, False), ("t_ns", BIGINT, False)
)

# events_per_s: of a region, delivered at one of its clients (mean over them); of a stream, the same over the
# clients that are to get it in that bin; of a link, carried between the
# proxies at its ends. bytes_per_s: the events' bytes; of a link, bytes on the wire.
THROUGHPUT = table_schema(
    ("scope", STRING, False, "'region', 'stream' or 'link'"),
    ("name", STRING, False, "as r2, s2 or r2-r3"),
    ("direction", STRING, True, "of a link: 'forward' or 'backward'"),
    ("start_s", DOUBLE, False, "of the bin, since time 0, s"),
    ("bin_s", DOUBLE, False, "its width, s"),
    (
        "events_per_s",
        DOUBLE,
        True,
        "delivered at a client: of a region, or of those that are to get a stream (means); carried by a link",
    ),
    ("bytes_per_s", DOUBLE, True, "the events' bytes; of a link, bytes on the wire"),
    ("traffic_bytes_per_s", DOUBLE, True, "of a link: other people's traffic, which bytes_per_s leave out"),
)

# How long each piece of a stream took until every client had it.
SAMPLES = table_schema(
    ("stream", INT, False),
    ("published_ns", BIGINT, False),
    ("latency_ns", BIGINT, False),
    ("count", BIGINT, False),
)

# How many events of a stream came to clients that need not have had them, and have no latency; and how many
# samples of latencies there were.
UNTIMED = table_schema(("stream", INT, False), ("count", BIGINT, False), ("samples", BIGINT, False))

LATENCY = table_schema(
    ("origin", STRING, False, "region whose events they are"),
    ("start_s", DOUBLE, False, "of the bin of the arrival at the local server, since time 0, s"),
    ("bin_s", DOUBLE, False, "its width, s"),
    ("count", BIGINT, False, "events"),
    ("mean_ms", DOUBLE, False, "until every client had an event, ms"),
    ("p50_ms", DOUBLE, False, "likewise"),
    ("p95_ms", DOUBLE, False, "likewise"),
    ("p99_ms", DOUBLE, False, "likewise"),
    ("max_ms", DOUBLE, False, "likewise"),
    ("bar_ms", DOUBLE, True, "by how much these may be wrong; null where one clock measured them"),
)

# One row per fault, stream and client, from the events alone.
PAIRS = table_schema(
    ("fault", STRING, False),
    ("stream", INT, False),
    ("client", STRING, False),
    ("affected", BOOLEAN, False),
    ("affected_by", STRING, True),  # 'process' | 'route' | 'gap'; 'unknown': nothing tells whether
    *((f"{name}_ns", BIGINT, True) for name in RECOVERY_TIMES),
    ("impaired", BIGINT, True),
    ("backlog_events", BIGINT, True),
    ("lost", BIGINT, False),
    ("old_way", STRING, True),  # 'r2 r3'
    ("new_way", STRING, True),
    ("hosts", pa.list_(STRING), True),  # on the old one, where paths lead from host to host
    ("reasons", pa.list_(STRING), False),
)

# One row per stream and client: how it flows after the last change of the run.
CONVERGENCE = table_schema(
    ("stream", INT, False, "number of the stream"),
    ("client", STRING, False, "host"),
    (
        "flows_ns",
        BIGINT,
        True,
        "from the last change until an event published after it came, ns; null: never",
    ),
    ("wait_ns", BIGINT, True, "the longest that an event published after it took to come, ns"),
    ("way_ns", BIGINT, True, "what the way by which that event came is configured to take, ns"),
    ("missed", BIGINT, False, "events published after the last change that never came"),
)

RECOVERY = table_schema(
    ("fault", STRING, False, "name"),
    ("stream", INT, False, "number of the stream"),
    ("client", STRING, False, "host"),
    ("affected", BOOLEAN, False, "whether the fault concerned this pair"),
    ("affected_by", STRING, True, "'process', 'route' or 'gap'; 'unknown': nothing tells whether"),
    ("requested_s", DOUBLE, False, "since time 0, s"),
    ("applied_s", DOUBLE, True, "since time 0, s"),
    ("detect_s", DOUBLE, True, "since applied_s: somebody noticed, s"),
    ("resubscribe_s", DOUBLE, True, "since applied_s: a new source was asked, s"),
    *((f"{name}_s", DOUBLE, True, f"since applied_s: {said}, s") for name, said in RECOVERY_TIMES.items()),
    ("impaired", BIGINT, True, "events that were lost or came late"),
    ("bar_s", DOUBLE, True, "by how much these times may be wrong; null where one clock measured them"),
    ("backlog_events", BIGINT, True, "events of the gap that came late"),
    ("lost", BIGINT, True, "events"),
    ("duplicated", BIGINT, True, "events"),
    ("out_of_order", BIGINT, True, "events"),
    ("old_way", STRING, True, "regions from the owner to the client before the fault, as 'r2 r3'"),
    ("new_way", STRING, True, "after it"),
    ("reason", STRING, True, "why a time is null"),
)

# One row per direction of a link and period of its configuration.
FIDELITY = table_schema(
    ("link", STRING, False, "as r2-r3"),
    ("direction", STRING, False, "'forward' or 'backward'"),
    ("from_s", DOUBLE, True, "since time 0, s; null: since before"),
    ("to_s", DOUBLE, True, "since time 0, s; null: to the end"),
    ("state", STRING, False, "'up', 'blackhole' or 'down'"),
    ("configured_delay_ms", DOUBLE, False, "one way, ms"),
    ("configured_jitter_ms", DOUBLE, False, "half-width around the delay, ms"),
    ("delay_min_ms", DOUBLE, True, "measured, ms"),
    ("delay_p50_ms", DOUBLE, True, "measured, ms"),
    ("delay_p99_ms", DOUBLE, True, "measured, ms"),
    ("bar_ms", DOUBLE, True, "by how much delays may be wrong; null where one clock measured them"),
    ("excess_p50_ms", DOUBLE, True, "beyond what the configured link would have taken, ms"),
    ("excess_p99_ms", DOUBLE, True, "likewise"),
    ("configured_loss", DOUBLE, False, "probability"),
    ("loss", DOUBLE, True, "by chance alone, of the packets that chance alone could lose"),
    ("loss_low", DOUBLE, True, "its confidence interval's lower end"),
    ("loss_high", DOUBLE, True, "its upper end"),
    ("lost_chance", BIGINT, False, "packets"),
    ("lost_queue", BIGINT, False, "packets, at the queue's limit"),
    ("lost_cut", BIGINT, False, "packets under way when the link was cut, or sent into it"),
    ("configured_rate_bits_per_s", DOUBLE, True, "null: no limit"),
    ("rate_bits_per_s", DOUBLE, True, "in the busiest second"),
    ("rate_part", DOUBLE, True, "of the configured rate, measured while it was used up"),
    ("packets", BIGINT, False, "segments seen on the sending side that can be told from all others"),
    ("matched", BIGINT, False, "of these, seen on both sides"),
    ("leaked", BIGINT, False, "seen on the far side although the link was cut"),
    ("strays", BIGINT, False, "seen on the far side alone"),
    ("verdict", STRING, False, "'proven', 'violated' or 'unproven'"),
    ("valid", BOOLEAN, False, "not violated"),
    ("reason", STRING, True, "of the verdict"),
    ("cause", STRING, True, "of a violation, where the run's own data tell it"),
)
