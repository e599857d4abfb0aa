"""The content of a plan as lines for users: attributes, events, subscriptions, and how many subscriptions an
event matches, measured on the plan's first events.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import isnan
from typing import Any

import numpy as np

from experiments.declared import Trait
from experiments.planned.plan import Plan, ProcessPlan
from node.core.content.content import ContentAttribute, Range, attributes_of
from node.core.content.content_matching import EventIndex
from node.core.content.event_values import EventValues
from node.core.content.value_distributions import Floats

Row = tuple[str, ...]
SHOWN = 3
"""Number of example events and subscriptions."""
MATCHED = 2000
"""Number of events used to measure selectivity."""


def attribute_rows(plan: Plan) -> Iterator[Row]:
    """Yield each attribute with its type, bounds and distributions."""
    described = plan.workload["attributes"]
    for attribute, given in zip(attributes_of(plan.workload), described, strict=True):
        parts = [
            f"{attribute.shown(attribute.low)} to {attribute.shown(attribute.high)}",
            _distribution("events", given.get("drawn"), attribute),
            _distribution("subscriptions", given.get("wanted"), attribute),
            f"missing in {given['unspecified'] * 100:.4g}% of events" if given.get("unspecified") else "",
        ]
        yield attribute.name, attribute.kind, "; ".join(filter(None, parts))


def _distribution(whose: str, given: Mapping[str, Any] | None, attribute: ContentAttribute) -> str:
    if given is None or given["kind"] == "uniform":
        return ""
    if given["kind"] == "events":
        return f"{whose}: as in events"
    peak = "" if given.get("peak") is None else f", most at {attribute.shown(given['peak'])}"
    return f"{whose}: Zipf, skew {given['skew']:g}{peak}"


def event_rows(plan: Plan) -> Iterator[Row]:
    """Yield the source of events and the first events of the first publisher."""
    events, share = plan.workload["events"], f"every {_nth(len(plan.streams))} of each publisher"
    sources = {
        "drawn": "values are drawn",
        "rows": f"rows of a file, {share}",
        "stocks": f"quotes of {events.get('stocks')} stocks, {share}",
    }
    yield "", sources[events["source"]]
    for publisher, values in list(_values(plan))[:1]:
        for number in range(SHOWN):
            pairs = zip(values.attributes, values.one(number), strict=True)
            texts = ", ".join(f"{each.name} {each.shown(value)}" for each, value in pairs if not isnan(value))
            yield publisher.name, texts


def _nth(number: int) -> str:
    return f"{number}th" if number > 3 else ("", "1st", "2nd", "3rd")[number]


def _values(plan: Plan) -> Iterator[tuple[ProcessPlan, EventValues]]:
    """Yield the publishers with their events."""
    for process in plan.having(Trait.PUBLISHER):
        for stream in plan.streams:
            if not {process.region, process.name}.isdisjoint(stream.publishers):
                place = stream.number, len(plan.streams)
                yield process, EventValues(plan.workload, process.seed, *place, process.rows)
                break


def subscription_rows(plan: Plan) -> Iterator[Row]:
    """Yield templates with their shares, example subscriptions, and the selectivity of all."""
    attributes = attributes_of(plan.workload)
    templates = plan.workload["templates"]
    weights = sum(template["weight"] for template in templates)
    for template in templates:
        wanted = [
            f"{name} {_predicates(each, attributes, name)}" for name, each in template["ranges"].items()
        ]
        yield f"{template['weight'] / weights:.1%}", ", ".join(wanted) or "everything"
    first = [
        (process, asked)
        for process in plan.processes
        for number, asked in enumerate(process.subscriptions)
        if asked.on and (number == 0 or asked.at_us == process.subscriptions[0].at_us)
    ]
    for process, asked in first[:SHOWN]:
        yield process.name, _ranges(asked.ranges, attributes)
    if first:
        yield "", _selectivity(plan, np.array([asked.ranges for _, asked in first], float))


def _predicates(
    wanted: Sequence[Mapping[str, Any]], attributes: Sequence[ContentAttribute], name: str
) -> str:
    [attribute] = [each for each in attributes if each.name == name]
    texts = []
    for each in wanted:
        if each["kind"] == "share":
            texts.append(f"{each['share'] * 100:.4g}%")
        elif each["kind"] == "fixed":
            texts.append(_range((each["low"], each["high"]), attribute))
        else:
            texts.append(each["kind"])
    return " or ".join(texts)


def _ranges(ranges: Sequence[Range], attributes: Sequence[ContentAttribute]) -> str:
    """Describe the ranges that exclude a value."""
    texts = [
        f"{each.name} {_range(wanted, each)}"
        for wanted, each in zip(ranges, attributes, strict=True)
        if wanted != (each.low, each.high)
    ]
    return ", ".join(texts) or "everything"


def _range(wanted: Range, attribute: ContentAttribute) -> str:
    low, high = (attribute.shown(each) for each in wanted)
    if wanted[0] == wanted[1]:
        return f"= {low}"
    if wanted[0] == attribute.low:
        return f"<= {high}"
    return f">= {low}" if wanted[1] == attribute.high else f"{low} to {high}"


def _selectivity(plan: Plan, ranges: Floats) -> str:
    """Describe how many of the first subscriptions the first events match."""
    publishers = list(_values(plan))
    values = [each.many(0, -(-MATCHED // len(publishers))) for _, each in publishers]
    if not values:
        return f"{len(ranges):,} at first"
    events = np.concatenate(values)
    domains = [(each.low, each.high) for each in attributes_of(plan.workload)]
    matched = np.zeros(len(events), np.int64)
    for _, event in EventIndex(domains, events.T).matches(ranges[:, :, 0].T, ranges[:, :, 1].T):
        matched += np.bincount(event, minlength=len(events))
    matching = f"an event matches {matched.mean():.3g} on average, median {np.median(matched):.3g}"
    none = f"{(matched == 0).mean():.1%} of {len(events):,} match none"
    return f"{len(ranges):,} at first: {matching}, at most {matched.max():,}; {none}"
