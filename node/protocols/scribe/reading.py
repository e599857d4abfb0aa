"""How the analysis reads Scribe: messages that carry events, and signs of noticed faults and of rejoining.

Several messages carry events (MULTICAST, REPLICATE, PUBLISH), also to nodes that only forward or store them.
So the nodes' own records determine which events they received, and packets determine the path.
"""

from node.core.declaration import Reading
from node.protocols.scribe.messages import topic_key

READING = Reading(
    carries=("MULTICAST", "REPLICATE"),
    publish=("PUBLISH", "PUBLISH"),
    routed=("ROUTE",),
    key_of=topic_key,
    asks=("JOIN", "FETCH"),
    rerouted=("JOIN",),
    moved="adopted",
    noticed=("parent_missed", "parent_silent", "parent_lost", "failed", "goodbye"),
    relayed=("relay", "no_relay"),
    heartbeat="HEARTBEAT",
    ranks=(
        "HEARTBEAT",
        "PING",
        "PONG",
        "ROUTED",
        "TREE_HEARTBEAT",
        "REFRESH",
        "LEAF_PROBE",
        "LEAF_ANSWER",
        "REPLICATED",
        "PUBLISHED",
        "PUBLISH",
    ),
    colours={"JOIN": "vermillion", "LEAVE": "orange", "TREE_HEARTBEAT": "green", "FETCH": "purple"},
)
