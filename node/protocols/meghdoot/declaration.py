"""Declaration of Meghdoot: roles, contract, and the location of its code."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from node.core.declaration import Contract, Declared, System, Trait
from node.protocols.meghdoot.parameters import MeghdootParameters
from node.protocols.overlay.declaration import roles_problem, waits

EXACTLY_ONCE = Contract(
    published="sent-then-acknowledged",
    audience="content",
    since="subscription",
    order="none",
    delivery="exactly-once",
    survives=None,
    settle_us=10_000_000,
)
"""Events of one publisher take different routes, by their content and by replicas in turn: there is no order.
The settle time is the minimum (`promise`).
"""
BEST_EFFORT = replace(EXACTLY_ONCE, published="sent", delivery="best-effort")
"""The paper's contract: events may be lost while zones are taken over."""


def promise(parameters: Mapping[str, Any]) -> Contract:
    """Return the contract of Meghdoot with these parameters.

    The settle time covers repair, takeover by the second successor and two retries, if a peer and its first
    successor have just failed. It also covers a second placement of a copy after a lost answer.
    """
    given = MeghdootParameters(**parameters)
    repaired_us = given.repair_us + given.takeover_us + 2 * given.retransmit_us
    installed_us = 2 * (given.wave_timeout_us + given.retransmit_us)
    contract = EXACTLY_ONCE if given.is_confirming else BEST_EFFORT
    return replace(contract, settle_us=max(contract.settle_us, repaired_us, installed_us))


def remembers(parameters: Mapping[str, Any]) -> int:
    """Return how long a subscriber may be silent without loss of its subscription.

    Its last update may be almost `refresh` old when it stops.
    """
    given = MeghdootParameters(**parameters)
    return min(given.gone_us, given.expire_us - given.refresh_us)


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
    parameters=MeghdootParameters,
    machines=dict.fromkeys(("publisher", "subscriber", "peer"), "node.protocols.meghdoot.node:pooled"),
    promise=promise,
    waits=waits,
    roles_problem=roles_problem,
    codec="node.protocols.meghdoot.messages:CODEC",
    reading="node.protocols.meghdoot.reading:READING",
    distributions=("numpy",),
    studies="node.protocols.meghdoot.studies.declaration:STUDIES",
    promise_limits=("gone_us", "window"),  # a publisher whose window is full waits for failed subscribers
    times=lambda parameters: (MeghdootParameters(**parameters).repair_us,),
    remembers=remembers,
    copies=lambda parameters: int(MeghdootParameters(**parameters).mirror),
)
