"""How Scribe is read: what carries events, what shows that a fault was noticed, ranks in diagrams."""

from node.core.declaration import Reading

READING = Reading(
    carries=("MULTICAST",),
    publish=("PUBLISH", "PUBLISHED"),
    asks=("JOIN", "FETCH"),
    rerouted=("JOIN",),
    noticed=("parent_silent", "parent_lost"),
    moved="parent_changed",
    heartbeat="HEARTBEAT",
    ranks=(
        "HEARTBEAT",
        "TREE_HEARTBEAT",
        "REFRESH",
        "LEAF_PROBE",
        "LEAF_ANSWER",
        "PING",
        "PONG",
        "REPLICATED",
    ),
    colours={"JOIN": "vermillion", "LEAVE": "orange", "TREE_HEARTBEAT": "green", "FETCH": "purple"},
)
