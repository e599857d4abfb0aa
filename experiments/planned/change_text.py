"""Changes of faults in words, with their values in the form of an experiment's file. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from experiments.planned.changes import LinkChange, LinkState, ProcessChange
from experiments.planned.plan import Plan
from topologies.jitter import NAMES, named_quantiles
from topologies.link_parameters import LinkParameters
from topologies.quantities import DRIFT, DURATION, FRACTION, OFFSET, SIZE, quantity_of, yaml_name

_OF_PROCESSES: Mapping[str, Callable[[Any], str]] = {
    "slower_us": lambda slower_us: f"sync {DURATION.format(slower_us)}",
    "offset_us": lambda offset_us: f"offset {OFFSET.format(offset_us)}",
    "drift_ppm": lambda drift_ppm: f"drift {DRIFT.format(drift_ppm)}",
    "processor": lambda processor: f"cpu {FRACTION.format(processor)}",
    "memory_bytes": lambda memory_bytes: f"memory {SIZE.format(memory_bytes)}",
}


def change_values(change: LinkChange | ProcessChange, plan: Plan) -> str:
    """Return the values of a change: `delay 80ms, loss 1%`, `offset -3s`; empty if it has none."""
    if isinstance(change, ProcessChange):
        values = {field: getattr(change, field) for field in _OF_PROCESSES}
        return ", ".join(_OF_PROCESSES[field](value) for field, value in values.items() if value)
    link = next(link for link in plan.links if link.name == change.link)
    is_up = change.state is LinkState.UP
    return differing_text(change.parameters, link.towards(change.direction)) if is_up else ""


def differing_text(parameters: LinkParameters, configured: LinkParameters) -> str:
    """Return the parameters that differ from the configured ones: of a traced one, only that it is traced."""
    given = (each.name for each in fields(parameters))
    names = (name for name in given if not getattr(parameters, f"{yaml_name(name)}_traced", False))
    pairs = ((name, getattr(parameters, name)) for name in names)
    return ", ".join(_text(name, value) for name, value in pairs if value != getattr(configured, name))


def _text(name: str, value: Any) -> str:
    quantity = quantity_of(name) or (FRACTION if isinstance(value, float) else None)
    shown = yaml_name(name).replace("_", " ")
    if value is None or isinstance(value, bool):
        return shown if value else f"no {shown}"
    if isinstance(value, tuple):
        named = (known for known in NAMES if named_quantiles(known) == value)
        return f"jitter distribution {next(named, 'measured')}"
    return f"{shown} {quantity.format(value) if quantity else value}"
