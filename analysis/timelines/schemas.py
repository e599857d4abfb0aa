"""Tables of the timelines and of intermediate steps: one definition of each, for Arrow and Parquet.

Columns ending in `_ns` are CLOCK_REALTIME nanoseconds, those ending in `_s` seconds since time 0 of the run
or, in `RECOVERY`, since the fault's applied time. Null means "could not be measured"; a reason column
explains it.
"""

import pyarrow as pa

from analysis.columns import BIGINT, BOOLEAN, DOUBLE, INT, STRING, Column, required, table_schema

BIN_NS = 200_000_000
"""The width of every timeline's bins."""

RECOVERY_TIMES = {
    "switch": "an event published after the fault arrived",
    "catch_up": "all events published before had arrived",
    "settled": "latency was as before",
    "returned": "the owner was the source again, after a restore",
    "rate_derived": "convergence by rates (RFC 6412)",
    "loss_derived": "convergence by losses (RFC 6412)",
    "connectivity_lost": "loss of connectivity (RFC 6412)",
}
"""Times measured for each pair: `<name>_ns` in PAIRS and in the dataclasses that measure them, `<name>_s` in
RECOVERY and in summary.json (`experiments.records.summary` has their titles).
"""


# One row per batch, place and direction. 'published': completely arrived at its local proxy, and later
# acknowledged; 'arrived' and 'sent': complete in the host's capture. Empty without captures of hosts.
EVENTS = table_schema(
    ("host", STRING, False, "host that captured it"),
    ("region", STRING, False, "region of the host"),
    ("role", STRING, False, "role of the host's process"),
    ("kind", STRING, False, "'published': at its server and acknowledged; 'arrived', 'sent': in the capture"),
    ("peer", STRING, True, "host at the other end"),
    ("via", STRING, True, "host that forwarded it, if any"),
    ("stream", INT, False, "number of the stream"),
    ("first_seq", BIGINT, False, "first sequence number of the batch"),
    ("count", BIGINT, False, "sequence numbers, including collected ones"),
    ("events", BIGINT, False, "of these, those that arrived as events"),
    ("t_ns", BIGINT, False, "time"),
    ("bytes", BIGINT, True, "size of the batch"),
)

# One row per record of a deliveries file, as the nodes wrote it (node.core.deliveries).
RECORDS = required(
    host=STRING,
    session=INT,  # number of the process's start, from 0
    position=BIGINT,  # index of the record in its file
    **dict.fromkeys(("kind", "stream"), INT),
    first_seq=BIGINT,
    count=INT,
    **dict.fromkeys(("t_ns", "batch_crc", "running_crc"), BIGINT),
    covered=BIGINT,  # sequence numbers; more than count if events were collected
)

# One row per client and stream: the client's deliveries compared with the drivers' publications.
DELIVERIES = table_schema(
    ("client", STRING, False, "host"),
    ("stream", INT, False, "number of the stream"),
    ("published", BIGINT, False, "events that publishers recorded as published"),
    ("published_twice", BIGINT, False, "publications under the number of another event"),
    ("delivered", BIGINT, False, "distinct events delivered"),
    ("tombstoned", BIGINT, False, "arrived only as tombstones"),
    ("covered", BIGINT, False, "delivered or tombstoned: accounted for"),
    ("delivered_while_running", BIGINT, False, "events delivered until the publishers stopped"),
    ("lost", BIGINT, False, "expected in some session, but not accounted for in it"),
    ("unacknowledged", BIGINT, False, "the same, but the publisher died before the acknowledgement"),
    ("duplicated", BIGINT, False, "delivered again within a session, or published twice"),
    ("out_of_order", BIGINT, False, "after a later event of its session, or against other clients' order"),
    ("stray", BIGINT, False, "events that the client was not to get"),
    ("resurrected", BIGINT, False, "delivered after their tombstone, or collected against the rule"),
    ("corrupted", BIGINT, False, "with other bytes than published"),
    ("unverified", BIGINT, False, "in other batches than published, so no CRC could be compared"),
    ("duplicated_after", pa.list_(BIGINT), False, "duplicated from each instant with faults to the next"),
    ("out_of_order_after", pa.list_(BIGINT), False, "the same for out_of_order"),
    ("digest", BIGINT, False, "digest of the sequence numbers accounted for"),
    ("published_digest", BIGINT, False, "digest of those published"),
)

# Arrivals at a client that contradict the order at other clients, if all are to get one order.
# instant: last instant with faults before it (`RunMetadata.instants`); -1: none.
DISORDER = required(client=STRING, stream=INT, instant=BIGINT, events=BIGINT)

# Planned subscriptions of each client, and those that were not confirmed in time.
CONFIRMATIONS = table_schema(
    ("client", STRING, False, "host"),
    ("asked", BIGINT, False, "planned subscriptions, once for each session concerned"),
    ("unconfirmed", BIGINT, False, "of these, those not confirmed in time"),
    ("wait_max_ns", BIGINT, True, "longest time until a confirmation, ns; null without any"),
)

# For contracts by content: how many events are for how many subscriptions or clients.
SELECTIVITY = table_schema(
    ("what", STRING, False, "'subscriptions' or 'clients'"),
    ("matched", BIGINT, False, "number of them that an event is for"),
    ("events", BIGINT, False, "number of events for that many"),
)

# A system's own measurements, a row per value; and statistics for each name and value of a host.
MEASURES = table_schema(
    ("host", STRING, False, "host of the measuring process"),
    ("name", STRING, False, "name of the measurement"),
    ("value", STRING, False, "name of the value, as given by the system"),
    ("t_ns", BIGINT, False, "time of the measurement"),
    ("number", DOUBLE, False, "the value"),
)
MEASURED = required(
    name=STRING, value=STRING, count=BIGINT, sum=DOUBLE, min=DOUBLE, max=DOUBLE, last=DOUBLE, last_ns=BIGINT
)

# One row per driver and stream: whether its events are in the order in which it published them.
PUBLISHERS = table_schema(
    ("driver", STRING, False, "host"),
    ("stream", INT, False, "number of the stream"),
    ("published", BIGINT, False, "acknowledged events"),
    ("unordered", BIGINT, False, "of these, those numbered before an earlier one of the publisher"),
    ("published_twice", BIGINT, False, "under a number that this publisher had used before"),
)

# The part of a stream that a host has by its packets, comparable with `DELIVERIES`.
COVERAGE = required(host=STRING, stream=INT, events=BIGINT, digest=BIGINT)

# Intermediate sums for `THROUGHPUT`: arrivals in a region, and bytes on a link, per bin since time 0.
ARRIVALS = table_schema(
    ("region", STRING, False),
    ("source", STRING, True),  # sending region; null if no packet shows it
    ("at_client", BOOLEAN, False),  # otherwise at a server
    ("stream", INT, False),
    ("bin", BIGINT, False),
    ("events", BIGINT, False),
    ("bytes", BIGINT, True),
)
# How many clients followed a stream from one bin to another, both inclusive.
FOLLOWED = required(stream=INT, first_bin=BIGINT, last_bin=BIGINT, clients=BIGINT)
WIRE = required(link=STRING, direction=STRING, bin=BIGINT, bytes=BIGINT)

# Background traffic on a link, per entry and bin, from its far side; not included in `bytes` of WIRE.
TRAFFIC = table_schema(
    ("name", STRING, False, "name of the entry"),
    ("link", STRING, False, "e.g. r2-r3"),
    ("direction", STRING, False, "'forward' or 'backward'"),
    ("bin", BIGINT, False, "number of the 200 ms bin since time 0"),
    ("packets", BIGINT, False, "segments"),
    ("bytes", BIGINT, False, "bytes on the wire"),
    ("payload_bytes", BIGINT, False, "payload towards its receiver, without retransmissions"),
)

# Traffic over links between regions: messages by host, copies of events by stream, and both combined.
WAN_MESSAGES = required(link=STRING, direction=STRING, messages=BIGINT, bytes=BIGINT)
WAN_COPIES = required(link=STRING, direction=STRING, stream=INT, copies=BIGINT, distinct=BIGINT, most=BIGINT)
WAN = table_schema(
    ("link", STRING, False, "e.g. r2-r3"),
    ("direction", STRING, False, "'forward' or 'backward'"),
    ("messages", BIGINT, False, "messages that crossed it"),
    ("bytes", BIGINT, False, "message bytes, without packet headers"),
    ("copies", BIGINT, False, "copies of all events that crossed it"),
    ("distinct", BIGINT, False, "distinct events that crossed it"),
    ("most", BIGINT, False, "most copies of one event"),
)

# Data of a host or capture with times outside the run, which tables over time exclude.
# what: 'messages' | 'packets' | 'records'.
OUTSIDE = required(place=STRING, what=STRING, count=BIGINT, of=BIGINT, first_ns=BIGINT, last_ns=BIGINT)

# Configurations of the regions' chains, as decided by their configuration services.
CHAINS = table_schema(
    ("region", STRING, False, "region of the chain"),
    ("at_s", DOUBLE, False, "time of the decision since time 0, s"),
    ("number", BIGINT, False, "number of the configuration"),
    ("chain", pa.list_(STRING), False, "processes from head to tail"),
    ("joining", STRING, True, "joining process"),
)

# SUBSCRIBE messages sent by proxies.
SUBSCRIPTIONS = required(host=STRING, dst=STRING, stream=INT, t_ns=BIGINT)

# events_per_s: for a region, mean over its clients; for a stream, mean over the clients that are to get it in
# that bin; for a link, events between the proxies at its ends. bytes_per_s: the events' bytes; for a link,
# bytes on the wire.
THROUGHPUT = table_schema(
    ("scope", STRING, False, "'region', 'stream' or 'link'; 'capture' or 'pair' for captures without a run"),
    ("name", STRING, False, "e.g. r2, s2, r2-r3; a capture, or with its two addresses a pair"),
    ("direction", STRING, True, "for a link or a pair: 'forward' or 'backward'"),
    ("start_s", DOUBLE, False, "start of the bin since time 0, s"),
    ("bin_s", DOUBLE, False, "width of the bin, s"),
    ("events_per_s", DOUBLE, True, "mean over clients that are to get them; for a link, between proxies"),
    ("bytes_per_s", DOUBLE, True, "the events' bytes; for a link, capture or pair, bytes on the wire"),
    ("traffic_bytes_per_s", DOUBLE, True, "for a link: background traffic, not included in bytes_per_s"),
)

# One row per TCP connection and capture that has it. `_to_server` and `_to_client`: of the two directions.
_ENDS: tuple[Column, ...] = (
    ("capture", STRING, False, "file name without its ending"),
    ("client", STRING, False, "address that opened it; if no capture shows it, that of the higher port"),
    ("client_port", INT, False, "its port"),
    ("server", STRING, False, "the other address"),
    ("server_port", INT, False, "its port"),
)
CONNECTIONS = table_schema(
    *_ENDS,
    ("start_ns", BIGINT, False, "time of its first packet"),
    ("end_ns", BIGINT, False, "time of its last packet"),
    ("opened", BOOLEAN, False, "whether its SYN was captured"),
    ("answered", BOOLEAN, False, "whether a SYN-ACK was captured"),
    ("round_trip_ms", DOUBLE, True, "from the SYN to the acknowledgement of its answer; null if repeated"),
    ("closed_ns", BIGINT, True, "time of its first FIN or RST"),
    ("closed_by", STRING, True, "'client' or 'server', who sent it"),
    ("closed_how", STRING, True, "'FIN' or 'RST'"),
    ("packets_to_server", BIGINT, False, "packets"),
    ("packets_to_client", BIGINT, False, "packets"),
    ("bytes_to_server", BIGINT, False, "payload, with retransmissions"),
    ("bytes_to_client", BIGINT, False, "payload, with retransmissions"),
    ("wire_bytes_to_server", BIGINT, False, "bytes on the wire"),
    ("wire_bytes_to_client", BIGINT, False, "bytes on the wire"),
    ("retransmissions_to_server", BIGINT, False, "segments that end at or before the end of an earlier one"),
    ("retransmissions_to_client", BIGINT, False, "segments that end at or before the end of an earlier one"),
    ("silence_s", DOUBLE, False, "its longest time without progress, s: see docs/captures.md"),
    ("silence_from_ns", BIGINT, True, "when that began; null: there was none"),
    ("silence_tries", BIGINT, False, "segments with data, SYN or FIN meanwhile that brought nothing new"),
)
# One row per time of at least 1 s in which a connection made no progress.
SILENCES = table_schema(
    *_ENDS,
    ("from_ns", BIGINT, False, "time of the last packet that brought something new"),
    ("to_ns", BIGINT, False, "time of the next such packet, or of its end: see docs/captures.md"),
    ("silence_s", DOUBLE, False, "its length, s"),
    ("tries", BIGINT, False, "segments with data, SYN or FIN sent meanwhile that brought nothing new"),
)

# One row per clock and period of a steady rate.
CLOCKS = table_schema(
    ("clock", STRING, False, "the machine, or the capture without a run, whose clock it is"),
    ("source", STRING, False, "'reference', 'packets', 'control' or 'nothing': how it is known"),
    ("from_ns", BIGINT, True, "begin of the period, by this clock; null for the reference or if unknown"),
    ("to_ns", BIGINT, True, "end of the period, by this clock"),
    ("offset_ms", DOUBLE, True, "how far it is ahead of the reference in the middle of the period, ms"),
    ("error_ms", DOUBLE, True, "widest error bound of the offset in the period, ms"),
    ("drift_ppm", DOUBLE, True, "how much faster it is than the reference, ppm"),
)

# The time until every client had each piece of a stream.
SAMPLES = required(stream=INT, published_ns=BIGINT, latency_ns=BIGINT, count=BIGINT)

# Number of events of a stream that arrived at clients but were due to none, so have no latency; and number of
# latency samples.
UNTIMED = required(stream=INT, count=BIGINT, samples=BIGINT)

LATENCY = table_schema(
    ("origin", STRING, False, "region that owns the stream"),
    ("start_s", DOUBLE, False, "start of the bin of arrival at the local server, since time 0, s"),
    ("bin_s", DOUBLE, False, "width of the bin, s"),
    ("count", BIGINT, False, "number of events"),
    ("mean_ms", DOUBLE, False, "time until every client had an event: mean, ms"),
    ("p50_ms", DOUBLE, False, "median, ms"),
    ("p95_ms", DOUBLE, False, "95th percentile, ms"),
    ("p99_ms", DOUBLE, False, "99th percentile, ms"),
    ("max_ms", DOUBLE, False, "maximum, ms"),
    ("error_ms", DOUBLE, True, "error bound of these times, ms; null if one clock measured them"),
)

# One row per fault, stream and client, from the events alone.
PAIRS = table_schema(
    ("fault", STRING, False),
    ("stream", INT, False),
    ("client", STRING, False),
    ("affected", BOOLEAN, False),
    ("affected_by", STRING, True),  # 'process' | 'route' | 'gap'; 'unknown': no evidence
    *((f"{name}_ns", BIGINT, True) for name in RECOVERY_TIMES),
    ("impaired", BIGINT, True),
    ("backlog_events", BIGINT, True),
    ("lost", BIGINT, False),
    ("old_way", STRING, True),  # 'r2 r3'
    ("new_way", STRING, True),
    ("hosts", pa.list_(STRING), True),  # hosts on the old path, if paths lead from host to host
    ("reasons", pa.list_(STRING), False),
)

# One row per stream and client: its flow after the last change of the run.
CONVERGENCE = table_schema(
    ("stream", INT, False, "number of the stream"),
    ("client", STRING, False, "host"),
    ("flows_ns", BIGINT, True, "from the last change to the arrival of an event since, ns; null: never"),
    ("wait_ns", BIGINT, True, "longest latency of an event published after it, ns"),
    ("way_ns", BIGINT, True, "configured delay of the path of that event, ns"),
    ("missed", BIGINT, False, "events published after the last change that never arrived"),
    ("last_event_ns", BIGINT, True, "arrival of the stream's last event, CLOCK_REALTIME ns; null: never"),
)

RECOVERY = table_schema(
    ("fault", STRING, False, "name of the fault"),
    ("stream", INT, False, "number of the stream"),
    ("client", STRING, False, "host"),
    ("affected", BOOLEAN, False, "whether the fault affected this pair"),
    ("affected_by", STRING, True, "evidence: 'process', 'route' or 'gap'; 'unknown': none"),
    ("requested_s", DOUBLE, False, "planned time of the fault since time 0, s"),
    ("applied_s", DOUBLE, True, "actual time of the fault since time 0, s"),
    ("detect_s", DOUBLE, True, "since applied_s: a server noticed the fault, s"),
    ("resubscribe_s", DOUBLE, True, "since applied_s: a server subscribed to a new source, s"),
    *((f"{name}_s", DOUBLE, True, f"since applied_s: {what}, s") for name, what in RECOVERY_TIMES.items()),
    ("impaired", BIGINT, True, "events that were lost or late"),
    ("error_s", DOUBLE, True, "error bound of these times, s; null if one clock measured them"),
    ("backlog_events", BIGINT, True, "largest number of events published but not yet arrived"),
    ("lost", BIGINT, True, "lost events"),
    ("duplicated", BIGINT, True, "duplicated events"),
    ("out_of_order", BIGINT, True, "events out of order"),
    ("old_way", STRING, True, "regions from the owner to the client before the fault, e.g. 'r2 r3'"),
    ("new_way", STRING, True, "the same after the fault"),
    ("reason", STRING, True, "why a time is null"),
)

TCP_OUTAGES = table_schema(
    ("link", STRING, False, "e.g. r2-r3"),
    ("from_s", DOUBLE, False, "when the link failed, s since time 0"),
    ("to_s", DOUBLE, False, "when it was back, s since time 0"),
    ("client", STRING, False, "host that opened the connection; if not captured, with the higher port"),
    ("server", STRING, False, "host at the other end"),
    ("port", INT, False, "the server's"),
    ("open", BOOLEAN, False, "whether it was open when the link failed"),
    ("tries", BIGINT, False, "segments with data, SYN or FIN that entered a failed direction meanwhile"),
    ("last_try_s", DOUBLE, True, "when the last of them did, s since time 0"),
    ("next_try_s", DOUBLE, True, "when the first one did after the link was back, s since time 0"),
    ("through_s", DOUBLE, True, "when the first one left the link after it was back, s since time 0"),
    ("ended_s", DOUBLE, True, "the first FIN or RST since the link failed, s since time 0"),
    ("ended_by", STRING, True, "host that sent it"),
    ("ended_how", STRING, True, "'FIN' or 'RST'"),
)

# One row per link direction and period of its configuration.
FIDELITY = table_schema(
    ("link", STRING, False, "e.g. r2-r3"),
    ("direction", STRING, False, "'forward' or 'backward'"),
    ("selected", STRING, True, "the packets that a fault selects, as 'port 7000'; null: all others"),
    ("from_s", DOUBLE, True, "start since time 0, s; null: from the beginning"),
    ("to_s", DOUBLE, True, "end since time 0, s; null: to the end of the run"),
    ("state", STRING, False, "'up', 'blackhole' or 'down'"),
    ("configured_delay_ms", DOUBLE, False, "one way, ms"),
    ("configured_jitter_ms", DOUBLE, False, "half-width around the delay, ms"),
    ("delay_min_ms", DOUBLE, True, "measured minimum, ms"),
    ("delay_p50_ms", DOUBLE, True, "measured median, ms"),
    ("delay_p99_ms", DOUBLE, True, "measured 99th percentile, ms"),
    ("error_ms", DOUBLE, True, "error bound of delays, ms; null if one clock measured them"),
    ("excess_p50_ms", DOUBLE, True, "delay beyond that of the configured link, median, ms"),
    ("excess_p99_ms", DOUBLE, True, "the same, 99th percentile, ms"),
    ("configured_loss", DOUBLE, False, "probability"),
    ("loss", DOUBLE, True, "random loss, as a part of the packets that only random loss could affect"),
    ("loss_low", DOUBLE, True, "lower end of its confidence interval"),
    ("loss_high", DOUBLE, True, "upper end of its confidence interval"),
    ("configured_duplicate", DOUBLE, False, "probability that a packet comes twice"),
    ("duplicate", DOUBLE, True, "packets that came twice, as a part of those that came"),
    ("duplicate_low", DOUBLE, True, "lower end of its confidence interval"),
    ("duplicate_high", DOUBLE, True, "upper end of its confidence interval"),
    ("configured_corrupt", DOUBLE, False, "probability that a bit of a packet is flipped"),
    ("corrupt", DOUBLE, True, "packets that came with a wrong checksum, as a part of those with a checksum"),
    ("corrupt_low", DOUBLE, True, "lower end of its confidence interval"),
    ("corrupt_high", DOUBLE, True, "upper end of its confidence interval"),
    ("lost_chance", BIGINT, False, "packets lost at random"),
    ("lost_queue", BIGINT, False, "packets dropped by a full queue"),
    ("lost_cut", BIGINT, False, "packets in flight when the link was cut, or sent while it was cut"),
    ("lost_size", BIGINT, False, "packets larger than the link's MTU"),
    ("configured_rate_bits_per_s", DOUBLE, True, "configured rate; null: no limit"),
    ("rate_bits_per_s", DOUBLE, True, "measured rate in the busiest second"),
    ("rate_part", DOUBLE, True, "measured rate over configured rate, while it was used up"),
    ("packets", BIGINT, False, "identifiable segments seen on the sending side"),
    ("matched", BIGINT, False, "of these, those seen on both sides"),
    ("leaked", BIGINT, False, "segments seen on the far side although the link was cut"),
    ("strays", BIGINT, False, "segments seen on the far side only"),
    ("verdict", STRING, False, "'proven', 'violated' or 'unproven'"),
    ("valid", BOOLEAN, False, "whether not violated"),
    ("reason", STRING, True, "reason of the verdict"),
    ("cause", STRING, True, "cause of a violation, if the run's data show it"),
)
