"""Parts of the declarations of all systems on an overlay."""

from collections.abc import Mapping
from typing import Any

from node.core.declaration import ReplyTimeout


def waits(parameters: Mapping[str, Any]) -> tuple[ReplyTimeout, ...]:
    """Return the waits that must exceed the round-trip time.

    A probe that times out before its answer can arrive marks all nodes as failed, and leads to ever more
    probes.
    """
    probes, timeout_us = parameters["probes"], parameters["probe_timeout_us"]
    return (ReplyTimeout("probe_timeout_us", probes * timeout_us, probes, is_relayed=True),)


def roles_problem(counts: Mapping[str, int]) -> str | None:
    """Return why a region cannot have these numbers of processes per role, or None."""
    if counts.get("publisher", 0) > 1:
        return "a region can have one publisher, which numbers the events of its streams: publisher: 1"
    return None
