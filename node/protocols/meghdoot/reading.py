"""How the analysis reads Meghdoot: messages that carry events, and signs of noticed faults and of takeovers.

An event reaches a host as NOTIFY, for its subscriber, or as EVENT, for one of its zones. So the nodes' own
records determine which events they received, and packets determine the path.
"""

from node.core.declaration import Reading

READING = Reading(
    carries=("EVENT", "NOTIFY"),
    publish=("PUBLISH", "PUBLISH"),
    routed=("ROUTE",),
    visits=("PUBLISH", "EVENT", "NOTIFY"),
    moved="takeover",
    noticed=("failed",),
    relayed=("relay", "no_relay"),
    heartbeat="HEARTBEAT",
    ranks=(
        "HEARTBEAT",
        "LOAD",
        "PING",
        "PONG",
        "ROUTED",
        "PROBE",
        "ALIVE",
        "NOTIFIED",
        "CONFIRM",
        "ROOT_CONFIRM",
        "SUBSCRIBED",
        "STORED",
        "FIND",
        "CLAIM_REQUEST",
        "UNHEARD",
        "STORE_AT",
        "STORE",
        "SUCCESSORS",
        "UNDELIVERED",
        "PUBLISH",
    ),
    # Rare messages (takeovers, recoveries) have no rank: diagrams omit them last.
    colours={"CLAIM": "vermillion", "RECOVER": "purple", "REPORT": "orange", "HANDED": "green"},
)
