"""How the analysis reads Sprinkler: event messages, signs of noticed faults, ranks in diagrams."""

from node.core.declaration import Reading
from node.protocols.sprinkler.messages import EventKind

READING = Reading(
    carries=("EVENTS", "SPARSE_EVENTS"),
    placeholder=int(EventKind.TOMBSTONE),
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
    # An advertisement without counters only shows that its sender is alive (paper 3.3).
    heartbeat="ADVERTISEMENT",
    # Rare messages, which indicate changes, have no rank: diagrams omit them last.
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
