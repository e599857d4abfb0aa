"""A violation in one sentence: the affected process, the broken property, and the preceding disturbances."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from experiments.hunting.case import ON_REGIONS, HuntCase, HuntDisturbance
from experiments.hunting.networks import network_text
from experiments.nemesis import SHARES

SERIOUS = (
    "crashed",
    "malformed",
    "died",
    "corrupted",
    "resurrected",
    "stray",
    "duplicated",
    "out_of_order",
    "published_twice",
    "unordered_publishers",
    "lost",
    "unshared",
    "stalled",
    "silent",
)
"""Kinds of violation by seriousness; the first one found represents a run."""
DID: Mapping[str, str] = {
    "lost": "{who} never got {count} of stream {stream}",
    "unshared": "{who} never got {count} of stream {stream} that others have",
    "duplicated": "{who} got {count} of stream {stream} more than once",
    "out_of_order": "{who} got {count} of stream {stream} out of order",
    "stray": "{who} got {count} of stream {stream} that it should not get",
    "corrupted": "{who} got {count} of stream {stream} that differed from the published ones",
    "resurrected": "{who} got {count} of stream {stream} after their tombstones",
    "stalled": "{who} still lacked {count} of stream {stream} when the drain was over",
    "silent": "{who} stopped publishing",
    "died": "{who} ended by itself",
}
PAST: Mapping[str, str] = {
    "cut": "the link {link} was cut{way} for {length}",
    "isolate": "region {target} was isolated{way} for {length}",
    "partition": "{target} was separated from {others} for {length}",
    "flap": "the link {link} flapped for {length}",
    "delay": "the link {link} was {amount} slow{way} for {length}",
    "loss": "the link {link} lost packets{way} for {length}",
    "duplicate": "the link {link} duplicated packets{way} for {length}",
    "corrupt": "the link {link} damaged packets{way} for {length}",
    "sever": "the link {link} was cut{way} permanently",
    "crash": "{target} was killed and restarted {length} later",
    "die": "{target} was killed permanently",
    "pause": "{target} was stopped for {length}",
    "leave": "{target} left and came back {length} later",
    "join": "{target} joined",
    "depart": "{target} left permanently",
    "separate": "{target} was separated from {others}{way} for {length}",
    "reset": "the connections of {target} were reset",
    "fill": "the disk of {target} was full for {length}",
    "slow-disk": "each sync of {target} took {amount} longer for {length}",
    "clock": "the clock of {target} was set{way} by {amount} for {length}",
    "throttle": "{target} had little processor time for {length}",
    "memory": "{target} had little memory for {length} and was restarted",
    "power": "region {region} lost power for {length}",
    "power-and-disks": "region {region} lost power and disks for {length}",
}


def most_serious(violations: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the most serious violation."""
    known = {kind: place for place, kind in enumerate(SERIOUS)}
    return min(violations, key=lambda each: known.get(each["kind"], len(known)))


def sentence(violation: Mapping[str, Any], case: HuntCase) -> str:
    """Return the violation and the disturbances before it as a sentence."""
    return f"{_what(violation)}{_after(case.disturbances)}{_with(case)}."


def signature(violation: Mapping[str, Any], case: HuntCase) -> str:
    """Return a text that is the same for findings that probably have the same cause.

    It has the kind, the affected roles, and the disturbances with their roles.
    """
    roles = sorted({each["role"] for each in violation["examples"]})
    causes = sorted({_short(each) for each in case.disturbances})
    return " ".join([violation["kind"], *roles, "after", *(causes or ["nothing"])])


def _what(violation: Mapping[str, Any]) -> str:
    examples = violation["examples"]
    form = DID.get(violation["kind"])
    if not examples or form is None:
        return str(violation["said"]).partition("\n")[0]
    first = examples[0]
    count = "an event" if first["count"] == 1 else f"{first['count']} events"
    text = form.format(who=first["client"], count=count, stream=first["stream"])
    return text + (" (and others)" if len(examples) > 1 else "")


def _after(disturbances: Sequence[HuntDisturbance]) -> str:
    if not disturbances:
        return ", without any disturbance"
    parts = [_past(disturbances[0])]
    for before, each in pairwise(disturbances):
        parts.append(("while " if each.at_us < before.end_us else "and then ") + _past(each))
    return ", after " + ", ".join(parts)


def _past(each: HuntDisturbance) -> str:
    way = "" if each.direction == "both" else f" ({each.direction} only)"
    if each.kind in {"delay", *SHARES}:
        way += f" for {each.others[0]}" if each.others else ""
        way += f" for port {each.port}" if each.port else ""
    if each.kind == "clock":
        way = f" {each.direction}"
    return PAST[each.kind].format(
        link=each.target[2] if len(each.target) > 2 else "-".join(each.target),
        target=_list(each.target),
        region=each.target[0].partition("/")[0],
        others=_list(each.others),
        way=way,
        length=_seconds(each.for_us),
        amount=f"{each.amount / 1000:g} ms",
    )


def _with(case: HuntCase) -> str:
    odd = {path: value for path, value in case.settings.items() if path not in {"duration", "workload.rate"}}
    if "topology" in odd:
        odd["topology"] = network_text(odd["topology"])
    return f" (with {', '.join(f'{path} {value}' for path, value in odd.items())})" if odd else ""


def _short(each: HuntDisturbance) -> str:
    if each.kind in ON_REGIONS:
        return each.kind
    roles = sorted({name.partition("/")[2].rpartition("-")[0] for name in each.target if "/" in name})
    return "-".join([each.kind, *roles])


def _list(names: Sequence[str]) -> str:
    return "".join(names) if len(names) < 2 else f"{', '.join(names[:-1])} and {names[-1]}"


def _seconds(us: int) -> str:
    return f"{us / 1e6:.3g} s"
