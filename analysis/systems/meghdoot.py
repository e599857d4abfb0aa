"""How Meghdoot is read: what carries events, what shows that faults were noticed and zones taken over.

An event comes to a host as NOTIFY, for its subscriber, or as EVENT, for one of its zones; so nodes' records
decide which events they got, and packets tell by which way.
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
        "TELL",
        "UNHEARD",
        "STORE_AT",
        "STORE",
        "HEIRS",
        "UNDELIVERED",
        "PUBLISH",
    ),
    # What is said seldom, of takeovers and recoveries, has no rank: it is left out last.
    colours={"CLAIM": "vermillion", "RECOVER": "purple", "REPORT": "orange", "HANDED": "green"},
)
