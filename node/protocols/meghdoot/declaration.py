"""What Meghdoot says of itself: roles, contract, and where its code stands."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from node.core.declaration import Contract, Declared, System, Trait, Wait
from node.protocols.meghdoot.parameters import Parameters

EXACTLY_ONCE = Contract(
    published="sent-then-acknowledged",
    audience="content",
    since="subscription",
    order="none",
    delivery="exactly-once",
    survives=None,
    settle_us=10_000_000,
)
"""Events of one publisher go different ways, by their content and by replicas in turn: no order is kept. The
time to settle is the least (`promise`).
"""
BEST_EFFORT = replace(EXACTLY_ONCE, published="sent", delivery="best-effort")
"""The paper's: what is lost while zones are taken over is lost."""


def promise(parameters: Mapping[str, Any]) -> Contract:
    """What Meghdoot promises with these parameters: whoever asks a peer that just failed, and whose first
    heir does not take it over either, asks the next one; and where an answer that a copy is placed gets lost,
    the next one may have to find its way first.
    """
    given = Parameters(**parameters)
    repaired_us = given.repair_us + given.takeover_us + 2 * given.retransmit_us
    installed_us = 2 * (given.wave_timeout_us + given.retransmit_us)
    contract = EXACTLY_ONCE if given.is_confirming else BEST_EFFORT
    return replace(contract, settle_us=max(contract.settle_us, repaired_us, installed_us))


def waits(parameters: Mapping[str, Any]) -> tuple[Wait, ...]:
    """A probe that gives up before an answer can come finds all peers failed."""
    probes, timeout_us = parameters["probes"], parameters["probe_timeout_us"]
    return (Wait("probe_timeout_us", probes * timeout_us, probes, is_relayed=True),)


def remembers(parameters: Mapping[str, Any]) -> int:
    """How long a subscriber may be silent: its last word may be almost as old as the next one is due."""
    given = Parameters(**parameters)
    return min(given.gone_us, given.expire_us - given.refresh_us)


def roles_problem(counts: Mapping[str, int]) -> str | None:
    """Why a region cannot have so many processes of each role, or None."""
    if counts.get("publisher", 0) > 1:
        return "a region's publisher numbers the events of its stream: there can be one, publisher: 1"
    return None


SYSTEM = System(
    declared=Declared(
        name="meghdoot",
        roles={
            "publisher": (Trait.PUBLISHER, Trait.SERVER, Trait.PEER),
            "subscriber": (Trait.SUBSCRIBER, Trait.SERVER, Trait.PEER, Trait.TRANSIENT),
            "peer": (Trait.SERVER, Trait.PEER, Trait.TRANSIENT),
        },
        contract=promise({}),
        workloads=("content",),
    ),
    parameters=Parameters,
    machines=dict.fromkeys(("publisher", "subscriber", "peer"), "node.protocols.meghdoot.node:pooled"),
    promise=promise,
    waits=waits,
    roles_problem=roles_problem,
    codec="node.protocols.meghdoot.messages:CODEC",
    reading="analysis.systems.meghdoot:READING",
    distributions=("numpy",),
    report="analysis.systems.meghdoot_report:report",
    studies="node.protocols.meghdoot.studies.declaration:STUDIES",
    promise_limits=("gone_us", "window"),  # a publisher whose window is full waits for who is gone
    times=lambda parameters: (Parameters(**parameters).repair_us,),
    remembers=remembers,
    copies=lambda parameters: int(Parameters(**parameters).mirror),
)
