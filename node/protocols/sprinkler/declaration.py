"""Declaration of Sprinkler: roles, contract, and references to its code."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from node.core.declaration import Contract, Declared, ReplyTimeout, System, Trait
from node.protocols.sprinkler.parameters import SprinklerParameters, is_durable, roles_problem


def silences(parameters: Mapping[str, Any]) -> Iterable[int]:
    """Return how long a peer may be silent, between proxies and elsewhere."""
    known = SprinklerParameters(**parameters)
    return {known.silence_us(is_between_proxies=each) for each in (True, False)}


def waits(parameters: Mapping[str, Any]) -> tuple[ReplyTimeout, ...]:
    """Return the limit on round trips: a connection takes a round trip to open."""
    return (ReplyTimeout("connect_timeout_us", parameters["connect_timeout_us"]),)


EXACTLY_ONCE = Contract(
    published="acknowledged",
    audience="all",
    since="beginning",
    order="stream",
    delivery="exactly-once",
    survives=None,
)


def promise(parameters: Mapping[str, Any]) -> Contract:
    """Return the contract of Sprinkler with these parameters: streams may stall under the printed rule."""
    is_paper = SprinklerParameters(**parameters).subscription_rule == "paper"
    return replace(EXACTLY_ONCE, delivery="at-most-once") if is_paper else EXACTLY_ONCE


SYSTEM = System(
    declared=Declared(
        name="sprinkler",
        roles={
            "proxy": (Trait.SERVER, Trait.REPLICATED),
            "driver": (Trait.PUBLISHER,),
            "client": (Trait.SUBSCRIBER, Trait.TRANSIENT),
            "configuration": (Trait.COORDINATOR,),
        },
        contract=EXACTLY_ONCE,
        streams_max=64,
    ),
    parameters=SprinklerParameters,
    machines={
        "proxy": "node.protocols.sprinkler.proxy:Proxy",
        "driver": "node.protocols.sprinkler.publishing.driver:Driver",
        "client": "node.protocols.sprinkler.region.client:Client",
        "configuration": "node.protocols.sprinkler.chain.configuration_service:ConfigurationService",
    },
    codec="node.protocols.sprinkler.messages:CODEC",
    reading="node.protocols.sprinkler.reading:READING",
    roles_problem=roles_problem,
    is_durable=is_durable,
    event_limit_bytes=lambda parameters: int(parameters["batch_limit_bytes"]),
    promise=promise,
    promise_limits=("history_limit_bytes", "publishers_limit"),
    batching=("flush_interval_us",),
    times=silences,
    waits=waits,
)
