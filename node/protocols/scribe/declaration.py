"""Declaration of Scribe: roles, contract, and the location of its code."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from node.core.declaration import Contract, Declared, System, Trait
from node.protocols.overlay.declaration import roles_problem, waits
from node.protocols.scribe.parameters import ScribeParameters

EXACTLY_ONCE = Contract(
    published="sent-then-acknowledged",
    audience="topic",
    since="subscription",
    order="stream",
    delivery="exactly-once",
    survives=None,
    settle_us=8_000_000,
)
BEST_EFFORT = replace(EXACTLY_ONCE, published="sent", order="none", delivery="best-effort")
"""2002, III: neither delivery nor order is promised, but what is delivered was published to the topic."""


def promise(parameters: Mapping[str, Any]) -> Contract:
    """Return the contract of Scribe with these parameters."""
    return BEST_EFFORT if ScribeParameters(**parameters).is_best_effort else EXACTLY_ONCE


SYSTEM = System(
    declared=Declared(
        name="scribe",
        roles={
            "publisher": (Trait.PUBLISHER, Trait.SERVER, Trait.PEER),
            "member": (Trait.SUBSCRIBER, Trait.SERVER, Trait.PEER, Trait.TRANSIENT),
            "forwarder": (Trait.SERVER, Trait.PEER, Trait.TRANSIENT),
        },
        contract=EXACTLY_ONCE,
        workloads=("topics",),
        streams_max=None,
    ),
    parameters=ScribeParameters,
    machines=dict.fromkeys(("publisher", "member", "forwarder"), "node.protocols.scribe.node:pooled"),
    promise=promise,
    promise_limits=("buffer_us", "buffer_events"),
    waits=waits,
    roles_problem=roles_problem,
    codec="node.protocols.scribe.messages:CODEC",
    reading="node.protocols.scribe.reading:READING",
    studies="node.protocols.scribe.studies.declaration:STUDIES",
)
