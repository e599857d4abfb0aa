"""What Scribe says of itself: roles, contract, and where its code stands."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from node.core.declaration import Contract, Declared, System, Trait, Wait
from node.protocols.scribe.parameters import Parameters

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
"""2002, III: no promise at all, and no order; but what comes was published, and to whom it belongs."""


def promise(parameters: Mapping[str, Any]) -> Contract:
    """What Scribe promises with these parameters."""
    return BEST_EFFORT if Parameters(**parameters).is_best_effort else EXACTLY_ONCE


def waits(parameters: Mapping[str, Any]) -> tuple[Wait, ...]:
    """A probe that gives up before an answer can come finds all nodes failed, and asks ever more of them."""
    probes, timeout_us = parameters["probes"], parameters["probe_timeout_us"]
    return (Wait("probe_timeout_us", probes * timeout_us, probes, is_relayed=True),)


def roles_problem(counts: Mapping[str, int]) -> str | None:
    """Why a region cannot have so many processes of each role, or None."""
    if counts.get("publisher", 0) > 1:
        return "a region's publisher numbers the events of its streams: there can be one, publisher: 1"
    return None


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
    parameters=Parameters,
    machines=dict.fromkeys(("publisher", "member", "forwarder"), "node.protocols.scribe.node:pooled"),
    promise=promise,
    promise_limits=("buffer_us", "buffer_events"),
    waits=waits,
    roles_problem=roles_problem,
    codec="node.protocols.scribe.messages:CODEC",
    reading="analysis.systems.scribe:READING",
    report="analysis.systems.scribe_report:report",
    studies="node.protocols.scribe.studies.declaration:STUDIES",
)
