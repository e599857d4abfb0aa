"""A case whose disturbances begin after what their processes do, in place of at a time.

What real processes do at other times than simulated ones, they do in the same order more often than not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from experiments.hunting.case import After, Case, Disturbance

KINDS = ("crash", "die", "pause", "leave")
NEAR_US = 50_000
"""What a process sent so long before a disturbance began can be what it begins after."""


def triggered(case: Case, messages: Sequence[Mapping[str, Any]], since_us: int) -> Case | None:
    """The case with all disturbances of a single process begun by the last message that it sent before; None
    if there is none such. messages: all that was sent since `since_us`: time_us, source and kind of each.
    """
    found = tuple(_triggered(each, messages, max(0, since_us)) for each in case.disturbances)
    return None if found == case.disturbances else replace(case, disturbances=found)


def _triggered(each: Disturbance, messages: Sequence[Mapping[str, Any]], since_us: int) -> Disturbance:
    if each.kind not in KINDS or len(each.target) != 1:
        return each
    process = each.target[0]
    mine = [
        message
        for message in messages
        if message["source"] == process and since_us <= message["time_us"] <= each.at_us
    ]
    if not mine or mine[-1]["time_us"] < each.at_us - NEAR_US:
        return each
    name = _innermost(mine[-1]["kind"])
    times = sum(name in message["kind"].split(":") for message in mine)
    return replace(each, after=After(process, name, times, since_us))


def _innermost(kind: str) -> str:
    return kind.rpartition(":")[2]
