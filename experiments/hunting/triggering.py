"""A case whose disturbances begin after what their processes do, in place of at a time.

What real processes do at other times than simulated ones, they do in the same order more often than not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from experiments.hunting.case import ON_LINKS, After, Case, Disturbance

OF_PROCESSES = ("crash", "die", "pause", "leave", "reset", "separate")
OF_LINKS = ("cut", "isolate", "partition", "delay", "loss", "sever")
NEAR_US = 50_000
"""What a process sent so long before a disturbance began can be what it begins after."""


def triggered(case: Case, messages: Sequence[Mapping[str, Any]], since_us: int) -> Case | None:
    """The case with all disturbances of a single process begun by the last message that it sent before, and
    those of links, where none meet, by the last that anybody did; None if there is none such. messages: all
    that was sent since `since_us`: time_us, source and kind of each.
    """
    found = tuple(
        each if _meets_another(each, case) else _triggered(each, messages, max(0, since_us))
        for each in case.disturbances
    )
    return None if found == case.disturbances else replace(case, disturbances=found)


def _meets_another(each: Disturbance, case: Case) -> bool:
    """Whether links are disturbed by it and by another one at once, or processes kept apart, so that neither
    can wait.
    """
    alike = ON_LINKS if each.kind in ON_LINKS else ("separate",)
    return each.kind in alike and any(
        other.kind in alike and other.at_us <= each.end_us and each.at_us <= other.end_us
        for other in case.disturbances
        if other is not each
    )


def _triggered(each: Disturbance, messages: Sequence[Mapping[str, Any]], since_us: int) -> Disturbance:
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
    return replace(each, after=After(process, name, times, since_us))


def _innermost(kind: str) -> str:
    return kind.rpartition(":")[2]
