"""The tables of the timelines and of the steps towards them: one definition of each, for Arrow and Parquet.

Columns ending in `_ns` are CLOCK_REALTIME nanoseconds, those ending in `_s` seconds since time 0 of the run
or, in `RECOVERY`, since the fault's applied time. Null means "could not be measured", and a reason stands
beside it.
"""

import pyarrow as pa

BIN_NS = 200_000_000
"""The width of every timeline's bins."""

_INT, _BIGINT, _DOUBLE, _STRING, _BOOLEAN = pa.int32(), pa.int64(), pa.float64(), pa.string(), pa.bool_()


RECOVERY_TIMES = (
    "switch",
    "catch_up",
    "settled",
    "returned",  # until the owner was the source again, after a restore
    "rate_derived",  # convergence times of RFC 6412, see `recovery_times`
    "loss_derived",
    "connectivity_lost",
)
"""What is measured of each pair: `<name>_ns` in PAIRS and in the dataclasses that measure it, `<name>_s` in
RECOVERY and in summary.json (`experiments.summary` says what it is called).
"""


def _schema(*columns: tuple[str, pa.DataType, bool]) -> pa.Schema:
    return pa.schema([pa.field(name, kind, nullable) for name, kind, nullable in columns])


# One row per batch, place and direction. 'published': arrived whole at its local proxy, and later
# acknowledged; 'arrived' and 'sent': whole at the host's capture. Empty without captures of hosts.
EVENTS = _schema(
    ("host", _STRING, False),
    ("region", _STRING, False),
    ("role", _STRING, False),
    ("kind", _STRING, False),
    ("peer", _STRING, True),
    ("via", _STRING, True),  # through which host, if through one
    ("stream", _INT, False),
    ("first_seq", _BIGINT, False),
    ("count", _BIGINT, False),  # sequence numbers, collected ones among them
    ("events", _BIGINT, False),  # of these, the ones that came as events
    ("t_ns", _BIGINT, False),
    ("bytes", _BIGINT, True),
)

# One row per record of a deliveries file, as the nodes wrote it (node.core.deliveries).
RECORDS = _schema(
    ("host", _STRING, False),
    ("session", _INT, False),  # counts the starts of the process, from 0
    ("position", _BIGINT, False),  # of the record in its file
    ("kind", _INT, False),
    ("stream", _INT, False),
    ("first_seq", _BIGINT, False),
    ("count", _INT, False),
    ("t_ns", _BIGINT, False),
    ("batch_crc", _BIGINT, False),
    ("running_crc", _BIGINT, False),
    ("covered", _BIGINT, False),  # sequence numbers; more than count where events were collected
)

# One row per client and stream: what the client got, held against what the drivers know to be published.
DELIVERIES = _schema(
    ("client", _STRING, False),
    ("stream", _INT, False),
    ("published", _BIGINT, False),
    ("published_twice", _BIGINT, False),  # publications of the stream under a number of another one
    ("delivered", _BIGINT, False),  # distinct events
    ("tombstoned", _BIGINT, False),  # came as tombstones alone
    ("covered", _BIGINT, False),  # both together: what is accounted for
    ("delivered_while_running", _BIGINT, False),  # events until the drivers stopped
    ("lost", _BIGINT, False),  # expected in some session, and not accounted for in it
    ("unacknowledged", _BIGINT, False),  # likewise, of publishers that died before they were told
    ("duplicated", _BIGINT, False),  # delivered again within a session, or published twice
    ("out_of_order", _BIGINT, False),  # after a later event of the same session, or of other clients' order
    ("stray", _BIGINT, False),  # that the client was not to get
    ("resurrected", _BIGINT, False),  # delivered after their tombstone, or collected against the rule
    ("corrupted", _BIGINT, False),  # other bytes than were published
    (
        "unverified",
        _BIGINT,
        False,
    ),  # delivered in other batches than published, so that no CRC could be compared
    ("duplicated_after", pa.list_(_BIGINT), False),  # per applied fault in order of time: until the next one
    ("out_of_order_after", pa.list_(_BIGINT), False),
    ("digest", _BIGINT, False),  # of the sequence numbers that are accounted for
    ("published_digest", _BIGINT, False),
)

# What came to a client against the order in which others got it, where all are to get one order.
DISORDER = _schema(
    ("client", _STRING, False),
    ("stream", _INT, False),
    ("fault", _BIGINT, False),  # the last applied one before it, by its place in order of time; -1: none
    ("events", _BIGINT, False),
)

# Of each client, what it was to subscribe to by the plan, and what of that was not confirmed in time.
CONFIRMATIONS = _schema(
    ("client", _STRING, False),
    ("asked", _BIGINT, False),  # subscriptions, once for each session that they concern
    ("unconfirmed", _BIGINT, False),
    ("wait_max_ns", _BIGINT, True),  # the longest until a confirmation; null without any
)

# Where events are for whoever wants what they are about: how many are for so many.
SELECTIVITY = _schema(
    ("what", _STRING, False),  # subscriptions, or clients
    ("matched", _BIGINT, False),
    ("events", _BIGINT, False),
)

# What a system measured itself, a row for each value; and for each name and value of a host its figures.
MEASURES = _schema(
    ("host", _STRING, False),
    ("name", _STRING, False),
    ("value", _STRING, False),
    ("t_ns", _BIGINT, False),
    ("number", _DOUBLE, False),
)
MEASURED = _schema(
    ("name", _STRING, False),
    ("value", _STRING, False),
    ("count", _BIGINT, False),
    ("sum", _DOUBLE, False),
    ("min", _DOUBLE, False),
    ("max", _DOUBLE, False),
    ("last", _DOUBLE, False),
    ("last_ns", _BIGINT, False),
)

# One row per driver: whether its stream has its events in the order in which it published them.
PUBLISHERS = _schema(
    ("driver", _STRING, False),
    ("stream", _INT, False),
    ("published", _BIGINT, False),  # acknowledged events
    ("unordered", _BIGINT, False),  # of these, numbered before an earlier one of the same driver
    ("published_twice", _BIGINT, False),  # under a number that this driver had given before
)

# What a place has of a stream according to the packets, in a form that can be compared with `DELIVERIES`.
COVERAGE = _schema(
    ("host", _STRING, False), ("stream", _INT, False), ("events", _BIGINT, False), ("digest", _BIGINT, False)
)

# Sums on the way to `THROUGHPUT`: what arrived in a region, and what a link carried, per bin (counted from
# time 0).
ARRIVALS = _schema(
    ("region", _STRING, False),
    ("source", _STRING, True),  # the region from which it came; null where no packet tells
    ("at_client", _BOOLEAN, False),  # else at a server
    ("stream", _INT, False),
    ("bin", _BIGINT, False),
    ("events", _BIGINT, False),
    ("bytes", _BIGINT, True),
)
# By how many clients a stream was followed from one bin to another, both included.
FOLLOWED = _schema(
    ("stream", _INT, False),
    ("first_bin", _BIGINT, False),
    ("last_bin", _BIGINT, False),
    ("clients", _BIGINT, False),
)
WIRE = _schema(
    ("link", _STRING, False),
    ("direction", _STRING, False),
    ("bin", _BIGINT, False),
    ("bytes", _BIGINT, False),
)

# What a link carried of other people's traffic, per entry and bin, from its far side; `bytes` of WIRE leave
# that out.
TRAFFIC = _schema(
    ("name", _STRING, False),
    ("link", _STRING, False),
    ("direction", _STRING, False),
    ("bin", _BIGINT, False),
    ("packets", _BIGINT, False),  # segments
    ("bytes", _BIGINT, False),  # on the wire
    ("payload_bytes", _BIGINT, False),  # of its load, towards its receiver, once
)

# What crossed links between regions: messages by host, copies of events by stream, and both together.
WAN_MESSAGES = _schema(
    ("link", _STRING, False),
    ("direction", _STRING, False),
    ("messages", _BIGINT, False),
    ("bytes", _BIGINT, False),  # of messages, without headers of packets
)
WAN_COPIES = _schema(
    ("link", _STRING, False),
    ("direction", _STRING, False),
    ("stream", _INT, False),
    ("copies", _BIGINT, False),  # of all events
    ("distinct", _BIGINT, False),  # events
    ("most", _BIGINT, False),  # copies of one event
)
WAN = _schema(
    ("link", _STRING, False),
    ("direction", _STRING, False),
    ("messages", _BIGINT, False),
    ("bytes", _BIGINT, False),
    ("copies", _BIGINT, False),
    ("distinct", _BIGINT, False),
    ("most", _BIGINT, False),
)

# What a host or a capture dates outside of the run, which no table laid out over time has a place for.
OUTSIDE = _schema(
    ("place", _STRING, False),
    ("what", _STRING, False),  # 'messages' | 'packets' | 'records'
    ("count", _BIGINT, False),
    ("of", _BIGINT, False),
    ("first_ns", _BIGINT, False),
    ("last_ns", _BIGINT, False),
)

# Configurations of the regions' chains, as their configuration services decided them.
CHAINS = _schema(
    ("region", _STRING, False),
    ("at_s", _DOUBLE, False),  # since time 0
    ("number", _BIGINT, False),
    ("chain", pa.list_(_STRING), False),  # processes from head to tail
    ("joining", _STRING, True),
)

# SUBSCRIBE as proxies sent it.
SUBSCRIPTIONS = _schema(
    ("host", _STRING, False), ("dst", _STRING, False), ("stream", _INT, False), ("t_ns", _BIGINT, False)
)

# events_per_s: of a region, delivered at one of its clients (mean over them); of a stream, the same over the
# clients that are to get it in that bin; of a link, carried between the
# proxies at its ends. bytes_per_s: the events' bytes; of a link, bytes on the wire.
THROUGHPUT = _schema(
    ("scope", _STRING, False),  # 'region' | 'stream' | 'link'
    ("name", _STRING, False),  # 'r2' | 's2' | 'r2-r3'
    ("direction", _STRING, True),  # of a link: 'forward' | 'backward'
    ("start_s", _DOUBLE, False),
    ("bin_s", _DOUBLE, False),
    ("events_per_s", _DOUBLE, True),
    ("bytes_per_s", _DOUBLE, True),
    ("traffic_bytes_per_s", _DOUBLE, True),  # of a link: other people's traffic, which bytes_per_s leave out
)

# How long each piece of a stream took until every client had it.
SAMPLES = _schema(
    ("stream", _INT, False),
    ("published_ns", _BIGINT, False),
    ("latency_ns", _BIGINT, False),
    ("count", _BIGINT, False),
)

# How many events of a stream came to clients that need not have had them, and have no latency.
UNTIMED = _schema(("stream", _INT, False), ("count", _BIGINT, False))

LATENCY = _schema(
    ("origin", _STRING, False),  # region
    ("start_s", _DOUBLE, False),  # bin of the arrival at the local proxy
    ("bin_s", _DOUBLE, False),
    ("count", _BIGINT, False),  # events
    ("mean_ms", _DOUBLE, False),
    ("p50_ms", _DOUBLE, False),
    ("p95_ms", _DOUBLE, False),
    ("p99_ms", _DOUBLE, False),
    ("max_ms", _DOUBLE, False),
    ("bar_ms", _DOUBLE, True),  # by how much these may be wrong; null where one clock measured them
)

# One row per fault, stream and client, from the events alone.
PAIRS = _schema(
    ("fault", _STRING, False),
    ("stream", _INT, False),
    ("client", _STRING, False),
    ("affected", _BOOLEAN, False),
    ("affected_by", _STRING, True),  # 'process' | 'route' | 'gap'; 'unknown': nothing tells whether
    *((f"{name}_ns", _BIGINT, True) for name in RECOVERY_TIMES),
    ("impaired", _BIGINT, True),
    ("backlog_events", _BIGINT, True),
    ("lost", _BIGINT, False),
    ("old_way", _STRING, True),  # 'r2 r3'
    ("new_way", _STRING, True),
    ("hosts", pa.list_(_STRING), True),  # on the old one, where paths lead from host to host
    ("reasons", pa.list_(_STRING), False),
)

# One row per stream and client: how it flows after the last change of the run.
CONVERGENCE = _schema(
    ("stream", _INT, False),
    ("client", _STRING, False),
    ("flows_ns", _BIGINT, True),  # from the last change until an event published after it came; null: never
    ("wait_ns", _BIGINT, True),  # the longest that an event published after it took to come
    ("way_ns", _BIGINT, True),  # what the way by which that event came is configured to take
)

RECOVERY = _schema(
    ("fault", _STRING, False),
    ("stream", _INT, False),
    ("client", _STRING, False),
    ("affected", _BOOLEAN, False),
    ("affected_by", _STRING, True),  # 'process' | 'route' | 'gap'; 'unknown': nothing tells whether
    ("requested_s", _DOUBLE, False),  # since time 0
    ("applied_s", _DOUBLE, True),  # since time 0
    ("detect_s", _DOUBLE, True),
    ("resubscribe_s", _DOUBLE, True),
    *((f"{name}_s", _DOUBLE, True) for name in RECOVERY_TIMES),
    ("impaired", _BIGINT, True),  # events that were lost or came late
    ("bar_s", _DOUBLE, True),  # by how much these times may be wrong; null where one clock measured them
    ("backlog_events", _BIGINT, True),
    ("lost", _BIGINT, True),
    ("duplicated", _BIGINT, True),
    ("out_of_order", _BIGINT, True),
    ("old_way", _STRING, True),
    ("new_way", _STRING, True),
    ("reason", _STRING, True),
)

# One row per direction of a link and period of its configuration.
FIDELITY = _schema(
    ("link", _STRING, False),
    ("direction", _STRING, False),
    ("from_s", _DOUBLE, True),  # null: since before time 0
    ("to_s", _DOUBLE, True),  # null: to the end
    ("state", _STRING, False),
    ("configured_delay_ms", _DOUBLE, False),
    ("configured_jitter_ms", _DOUBLE, False),
    ("delay_min_ms", _DOUBLE, True),
    ("delay_p50_ms", _DOUBLE, True),
    ("delay_p99_ms", _DOUBLE, True),
    ("bar_ms", _DOUBLE, True),  # by how much delays may be wrong; null where one clock measured them
    ("excess_p50_ms", _DOUBLE, True),  # beyond what the configured link would have taken
    ("excess_p99_ms", _DOUBLE, True),
    ("configured_loss", _DOUBLE, False),
    ("loss", _DOUBLE, True),  # by chance alone, of the packets that chance alone could lose
    ("loss_low", _DOUBLE, True),  # its confidence interval
    ("loss_high", _DOUBLE, True),
    ("lost_chance", _BIGINT, False),
    ("lost_queue", _BIGINT, False),  # at the queue's limit
    ("lost_cut", _BIGINT, False),  # under way when the link was cut, or sent into it
    ("configured_rate_bits_per_s", _DOUBLE, True),
    ("rate_bits_per_s", _DOUBLE, True),  # in the busiest second
    ("rate_part", _DOUBLE, True),  # of the configured rate, measured while it was used up
    ("packets", _BIGINT, False),  # segments seen on the sending side that can be told from all others
    ("matched", _BIGINT, False),  # of these, seen on both sides
    ("leaked", _BIGINT, False),  # seen on the far side although the link was cut
    ("strays", _BIGINT, False),  # seen on the far side alone
    ("verdict", _STRING, False),  # 'proven' | 'violated' | 'unproven'
    ("valid", _BOOLEAN, False),  # not violated
    ("reason", _STRING, True),
    ("cause", _STRING, True),  # of a violation, where the run's own data tell it
)
