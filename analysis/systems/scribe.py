"""How Scribe is read: what carries events, what shows that a fault was noticed, and that a node joined anew.

Events come to a node by several messages (MULTICAST, REPLICATE, PUBLISH), and to nodes that only pass them
on or keep them for others; so nodes' records decide which events they got, and packets tell by which way.
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
