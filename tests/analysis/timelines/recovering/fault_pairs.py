"""Draw pairs of faults, run them in virtual time, and compare the analysis with `delivery_reference`.

A pair is at one instant, nested, overlapping or adjacent; on one link, on two links that share a region, or
on a link and a process.
"""

import json
import random
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from analysis.pipeline import analyze_here
from analysis.timelines.delivery.delivery_records import read_rows
from experiments.loader import experiment_from
from experiments.records.rundir import RunDirectory
from node.core.deliveries import RecordKind
from testbed.backends.simulator import simulate
from testbed.planning import make_plan
from testbed.runner.run_control import prepare
from tests.analysis.timelines.recovering.delivery_reference import (
    DELAYS_MS,
    REGIONS,
    RUN_S,
    Deliveries,
    Event,
    Reference,
    references,
)
from topologies.document import Document
from topologies.loader import topology_in

BIN_S = 0.2
EVENTS_PER_S = 50
SPANS = {  # when the first begins and how long it lasts, and the second
    "same instant": (3.0, 2.0, 3.0, 1.0),
    "same span": (3.0, 2.0, 3.0, 2.0),
    "nested": (3.0, 3.5, 4.5, 1.0),
    "nested in the gap": (3.0, 3.0, 3.5, 1.0),
    "overlapping": (3.0, 2.5, 4.75, 2.0),
    "adjacent": (3.0, 2.0, 5.0, 1.5),
}
PLACES = ("one link", "two links", "a link and a process")
FIGURES = {
    "first_s": "first_route_s",
    "switch_s": "switch_s",
    "catch_up_s": "catch_up_s",
    "silence_s": "connectivity_lost_s",
}

Given = dict[str, Any]


def drawn(number: int) -> tuple[str, list[Given]]:
    """Draw the pair of this number. Returns the name of its span, and the faults."""
    rng = random.Random(f"1 {number}")
    place, span = rng.choice(PLACES), rng.choice(list(SPANS))
    at_s, for_s, its_at_s, its_for_s = SPANS[span]
    link, other = ["a", "b"], ["a", "b"] if place == "one link" else rng.choice((["b", "c"], ["c", "a"]))
    one = _on_link(rng, link, at_s, for_s)
    if place == "a link and a process":
        two = _on_process(rng, its_at_s, its_for_s)
    elif rng.random() < 0.12 and "flap" not in one:  # nothing else has a restore
        one.pop("for")
        two = {"at": _at(its_at_s if its_at_s > at_s else at_s + for_s), "restore": "one"}
    else:
        two = _on_link(rng, other, its_at_s, its_for_s)
    named = [{"name": "one", **one}, {"name": "two", **two}]
    if rng.random() < 0.5 and "restore" not in two:
        named.reverse()
    return span, named


def _on_link(rng: random.Random, link: list[str], at_s: float, for_s: float) -> Given:
    when = {"at": _at(at_s), "for": _text(for_s)}
    ends = link if rng.random() < 0.5 else link[::-1]
    which = {"direction": rng.choice(("both", "both", "forward", "backward"))}
    mode = {"mode": rng.choice(("blackhole", "blackhole", "down"))}
    kind = rng.choice(("cut", "cut", "isolate", "partition", "flap", "set", "set"))
    if kind == "isolate":
        return {**when, "isolate": ends[0], **which, **mode}
    if kind == "partition":
        rest = [each for each in REGIONS if each != ends[0]]
        return {**when, "partition": [[ends[0]], rest], **mode}
    if kind == "flap":
        return {**when, "flap": ends, "down": "500ms", "up": "500ms", **which, **mode}
    if kind == "set":
        value = rng.choice(({"delay": "90ms"}, {"loss": "5%"}, {"rate": "2mbit"}))
        return {**when, "set": ends, **value, **which}
    return {**when, "cut": ends, **which, **mode}


def _on_process(rng: random.Random, at_s: float, for_s: float) -> Given:
    region = rng.choice(REGIONS)
    proxy, client = f"{region}/proxy-{rng.randrange(2)}", f"{region}/client-0"
    when = {"at": _at(at_s)}
    kind = rng.choice(("kill", "stop", "reset", "separate"))
    if kind == "separate":
        return {**when, "separate": proxy, "from": [client], "for": _text(for_s)}
    return {**when, kind: proxy}


def _text(time_s: float) -> str:
    return f"{round(time_s * 1000)}ms"


def _at(time_s: float) -> str:
    """Return a time at which nothing is published."""
    return _text(time_s + 0.007)


def experiment_of(faults: Sequence[Given]) -> dict[str, Any]:
    """Return an experiment with these faults, in the form of a file."""
    return {
        "name": "pairs",
        "topology": {
            "name": "triangle",
            "regions": {region: {"lan": {"delay": "1ms", "rate": "1gbit"}} for region in REGIONS},
            "links": [
                {"between": list(ends), "delay": f"{delay_ms}ms", "rate": "100mbit"}
                for ends, delay_ms in DELAYS_MS.items()
            ],
        },
        "system": "sprinkler",
        "roles": {"proxy": 2, "configuration": 1, "driver": 1, "client": 1},
        "workload": {"event_size": "10B", "rate": f"{EVENTS_PER_S}/s"},
        "duration": f"{RUN_S}s",
        "faults": list(faults),
        "expect": [f"recovery.{each['name']}.affected_pairs >= 0" for each in faults],
    }


def deliveries_of(run: RunDirectory, zero_ns: int) -> Deliveries:
    """Return when each event was published, and when each region's client received it."""
    found = {}
    for stream, owner in enumerate(REGIONS):
        by_region = {
            region: _times(run, f"{region}-client-0", stream, RecordKind.DELIVERED) for region in REGIONS
        }
        acknowledged = _times(run, f"{owner}-driver-0", stream, RecordKind.PUBLISHED)
        taken = [_times(run, f"{owner}-proxy-{number}", stream, RecordKind.PUBLISHED) for number in (0, 1)]
        seen = (acknowledged, *taken, *by_region.values())  # a driver hears of it later than clients may
        published = {seq: min(each[seq] for each in seen if seq in each) for seq in sorted(acknowledged)}
        for region, came in by_region.items():
            found[owner, region] = [
                Event((t_ns - zero_ns) / 1e9, None if seq not in came else (came[seq] - zero_ns) / 1e9)
                for seq, t_ns in published.items()
            ]
    return found


def _times(run: RunDirectory, host: str, stream: int, kind: RecordKind) -> dict[int, int]:
    rows = read_rows(run.host_deliveries(host))
    rows = rows[(rows["stream"] == stream) & (rows["kind"] == kind)]
    found: dict[int, int] = {}
    for first, count, t_ns in zip(
        rows["first_seq"].tolist(), rows["count"].tolist(), rows["time_ns"].astype(np.int64).tolist(),
        strict=True,
    ):  # fmt: skip
        for seq in range(first, first + count):
            found.setdefault(seq, t_ns)
    return found


def compared(number: int) -> list[str]:
    """Draw a pair, run it and return the differences. Raises InputError for a pair that is refused."""
    _, faults = drawn(number)
    document = Document("pair", experiment_of(faults), {})
    experiment = experiment_from(document)
    topology = topology_in(document.below(("topology",)))
    plan = make_plan(experiment, topology, seed=number, links_kind="auto")
    described = {"experiment": experiment.model_dump(mode="json"), "topology": {}}
    with tempfile.TemporaryDirectory(prefix="cutset-pairs-") as folder:
        run = prepare(Path(folder), plan, described)
        simulate(run, lambda _: None)
        summary = analyze_here(run, progress=lambda _: None)
        deliveries = deliveries_of(run, json.loads(run.run_json.read_text())["times"]["zero_ns"])
    reference = references(faults, deliveries)
    details = [
        f"{name}: {said}"
        for name, expected in reference.items()
        for said in apart(expected, summary["recovery"][name])
    ]
    applied = {each["name"]: each["applied_s"] for each in summary["faults"]}
    return details + [
        f"{name}: applied_s {applied[name]}, not {expected.acts_s}"
        for name, expected in reference.items()
        if (expected.acts_s is None) is not (applied[name] is None)
        or (expected.acts_s is not None and abs(expected.acts_s - applied[name]) > BIN_S)
    ]


def apart(expected: Reference, measured: Mapping[str, Any]) -> list[str]:
    """Return the figures of a fault that differ from the reference by more than a bin."""
    found = []
    if expected.pairs != measured["affected_pairs"]:
        found.append(f"affected_pairs {measured['affected_pairs']}, not {expected.pairs}")
    for name, theirs in FIGURES.items():
        here, there = getattr(expected, name), measured[theirs]
        if (here is None) is not (there is None) or (here is not None and abs(here - there) > BIN_S):
            found.append(f"{theirs} {there}, not {here}")
    behind, theirs = expected.backlog or 0, measured["backlog_events"] or 0
    if abs(behind - theirs) > EVENTS_PER_S * BIN_S:
        found.append(f"backlog_events {theirs}, not {behind}")
    if expected.lost != (measured["lost"] or 0):
        found.append(f"lost {measured['lost']}, not {expected.lost}")
    return found
