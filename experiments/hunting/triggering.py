"""A case whose disturbances begin after actions of processes instead of at a time.

Real processes act at other times than simulated ones, but mostly in the same order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from experiments.hunting.case import ON_LINKS, DisturbanceTrigger, HuntCase, HuntDisturbance

OF_PROCESSES = ("crash", "die", "pause", "leave", "reset", "separate")
OF_LINKS = tuple(kind for kind in ON_LINKS if kind != "flap")
NEAR_US = 50_000
"""A message triggers a disturbance if it was sent at most this long before."""


def triggered(case: HuntCase, messages: Sequence[Mapping[str, Any]], since_us: int) -> HuntCase | None:
    """Return the case with triggers instead of times, or None if no disturbance can have one.

    The trigger of a disturbance on one process is the last message that it sent before; for links it is the
    last message of any process, unless disturbances overlap. messages: all sent since `since_us`, each with
    time_us, source and kind.
    """
    found = tuple(
        each if _meets_another(each, case) else _triggered(each, messages, max(0, since_us))
        for each in case.disturbances
    )
    return None if found == case.disturbances else replace(case, disturbances=found)


def _meets_another(each: HuntDisturbance, case: HuntCase) -> bool:
    """Return whether another disturbance of links, or another separation, overlaps it, so that it cannot
    wait.
    """
    alike = ON_LINKS if each.kind in ON_LINKS else ("separate",)
    return each.kind in alike and any(
        other.kind in alike and other.at_us <= each.end_us and each.at_us <= other.end_us
        for other in case.disturbances
        if other is not each
    )


def _triggered(
    each: HuntDisturbance, messages: Sequence[Mapping[str, Any]], since_us: int
) -> HuntDisturbance:
    earlier = [message for message in messages if since_us <= message["time_us"] <= each.at_us]
    if each.kind in OF_LINKS:
        process = earlier[-1]["source"] if earlier else ""
    elif each.kind in OF_PROCESSES and len(each.target) == 1:
        process = each.target[0]
    else:
        return each
    mine = [message for message in earlier if message["source"] == process]
    if not mine or mine[-1]["time_us"] < each.at_us - NEAR_US:
        return each
    name = _innermost(mine[-1]["kind"])
    times = sum(name in message["kind"].split(":") for message in mine)
    return replace(each, after=DisturbanceTrigger(process, name, times, since_us))


def _innermost(kind: str) -> str:
    return kind.rpartition(":")[2]
