"""How Sprinkler is read: what carries events, what shows that a fault was noticed, ranks in diagrams."""

from node.core.declaration import Reading
from node.protocols.sprinkler.messages import Kind

READING = Reading(
    carries=("EVENTS", "SPARSE_EVENTS"),
    placeholder=int(Kind.TOMBSTONE),
    publish=("PUBLISH", "PUBLISHED"),
    asks=("SUBSCRIBE", "REQUEST", "FOLLOW"),
    rerouted=("SUBSCRIBE",),
    moved="source_switched",
    noticed=("peer_silent", "peer_lost", "peer_connected"),
    membership=(
        "configuration_changed",
        "replica_removed",
        "replica_joined",
        "became_head",
        "became_tail",
    ),
    # An advertisement without counters says only that its sender lives (paper 3.3).
    heartbeat="ADVERTISEMENT",
    # What is sent seldom, and so says that something changed, has no rank: it is left out last.
    ranks=(
        "VIEW",
        "STORED",
        "PUBLISHED",
        "NOTIFY",
        "REQUEST",
        "ANSWERED",
        "PUBLICATION",
        "PUBLISH",
        "ADVERTISEMENT",
        "PATHS",
    ),
    colours={
        "SUBSCRIBE": "vermillion",
        "UNSUBSCRIBE": "orange",
        "ADVERTISEMENT": "green",
        "REQUEST": "purple",
        "ANSWERED": "answers",
    },
)
