"""Compares interpretations of Meghdoot's paper, which leaves joins open, by the number of zones (table 1).

Every interpretation has the same subscriptions and events. A simulation ends soon after the last join,
because zones do not change any more.
"""

import gc
from copy import copy, deepcopy
from dataclasses import asdict, fields
from itertools import product
from typing import get_args, get_type_hints

from node.core.study import StudyContext
from node.protocols.meghdoot.studies.paper import PaperSimulation
from node.protocols.meghdoot.studies.parameters import PaperParameters, ReadingsParameters
from node.sim.quiet import cyclic_gc_disabled

OPEN = ("order", "load_counts", "split_rule", "simulation_event", "wanted")
"""Parameters of `PaperParameters` that the paper leaves open."""


def execute(parameters: ReadingsParameters, given: StudyContext) -> None:
    """Simulate the chosen readings; one row each."""
    hints = get_type_hints(PaperParameters)
    chosen = {name: getattr(parameters, name) for name in OPEN}
    values = [get_args(hints[name]) if value == "all" else (value,) for name, value in chosen.items()]
    readings = [dict(zip(OPEN, each, strict=True)) for each in product(*values)]
    common = {field.name for field in fields(PaperParameters)}
    shared = {name: value for name, value in asdict(parameters).items() if name in common - {*OPEN}}
    for number, reading in enumerate(readings):
        with cyclic_gc_disabled():
            row = _row(PaperParameters(**shared, **reading), given, parameters.events_after_joins)
        gc.collect()  # peers refer to each other
        given.write("readings", {name: [value] for name, value in (reading | row).items()})
        given.report(f"{', '.join(reading.values())}: {row['zones']} zones", (number + 1) / len(readings))


def _row(parameters: PaperParameters, given: StudyContext, events: int) -> dict[str, float]:
    """Simulate one interpretation until this number of events after the last join."""
    context = copy(given)
    context.rng, context.generator = deepcopy(given.rng), deepcopy(given.generator)
    simulation = PaperSimulation(parameters, context)
    simulation.run(events)
    degrees, shares = simulation.degrees(), simulation.shares()[-events:]
    return {
        "peers": int(degrees.sum()),
        "zones": len(degrees),
        "degree_max": int(degrees.max()),
        "within_5_percent": float((shares <= 0.05).mean()),
    }
