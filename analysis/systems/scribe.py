"""How Scribe is read: what shows that a fault was noticed and that another way was taken, ranks in diagrams.

Events come to a node by several messages (MULTICAST, REPLICATE, PUBLISH), within others where they are routed
or relayed; so what nodes wrote down decides which events they got.
"""

from node.core.declaration import Reading
from node.protocols.scribe.messages import topic_key

READING = Reading(
    key_of=topic_key,
    asks=("JOIN", "FETCH"),
    rerouted=("JOIN",),
    noticed=("parent_silent", "parent_lost"),
    heartbeat="HEARTBEAT",
    ranks=(
        "HEARTBEAT",
        "PING",
        "PONG",
        "TREE_HEARTBEAT",
        "REFRESH",
        "LEAF_PROBE",
        "LEAF_ANSWER",
        "REPLICATED",
        "PUBLISHED",
        "REPLICATE",
    ),
    colours={"JOIN": "vermillion", "LEAVE": "orange", "TREE_HEARTBEAT": "green", "FETCH": "purple"},
)
