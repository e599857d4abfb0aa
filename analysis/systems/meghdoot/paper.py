"""Figures 9 to 15 and table 1 of Meghdoot's paper, from its study, compared with the paper's numbers.

The data of the paper's curves is not available; the table has the numbers that its text gives.
"""

from functools import partial

import numpy as np

from analysis.pages.charting.chart_model import Axis, Reference
from analysis.pages.report.charts.sweep_charts import SweepChart, sweep_series
from analysis.pages.study.results import Measure, StudyContent, StudyResults, Values
from analysis.systems.papers import PaperComparison, paper_value

STANDARD_SUBSCRIPTIONS, STANDARD_EVENTS = 14_029, 116_000
"""A study with more subscriptions is one of figures 10 and 13, with more events one of figures 11 and 14."""
SHARES = (0.05, 0.1, 0.15)
PAPER = "meghdoot-2004"
UNSAID, NOT_STATED = "only in the figure", "not stated"


def page(results: StudyResults) -> StudyContent:
    """Return the study's charts and numbers."""
    charts = (_contacted(results), _load(results), _degrees(results))
    return StudyContent(charts, (*_contact_numbers(results), *_load_numbers(results)), _notes(results))


def _figures(results: StudyResults) -> tuple[str, str]:
    """Return the names of the paper's figures of contacts and of load."""
    parameters = results.record.parameters
    if parameters["events"] > STANDARD_EVENTS:
        return "figure 11", "figure 14"
    if parameters["subscriptions"] > STANDARD_SUBSCRIPTIONS:
        return "figure 10", "figure 13"
    letter = "a" if parameters["source"] == "uniform" else "b"
    return f"figure 9{letter}", f"figure 12{letter}"


def _shares(results: StudyResults, seed: int) -> Values:
    """Return the part of the present peers that each event visited."""
    return results.column(seed, "events", "visited") / results.column(seed, "events", "peers")


def _loads(results: StudyResults, seed: int) -> Values:
    """Return each peer's part of all messages since it joined, in descending order."""
    total = results.column(seed, "peers", "of")
    loads = results.column(seed, "peers", "received") / np.maximum(total, 1)
    return np.sort(loads[total > 0])[::-1]


def _most_loaded(results: StudyResults, seed: int) -> float:
    """Return the place of the most loaded peer in the order of joins, from 1 on."""
    loads = results.column(seed, "peers", "received") / np.maximum(results.column(seed, "peers", "of"), 1)
    return float(loads.argmax()) + 1


def _deciles(results: StudyResults, seed: int) -> list[float]:
    return [float(part.mean()) for part in np.array_split(_loads(results, seed), 10)]


def _contact_numbers(results: StudyResults) -> tuple[PaperComparison, ...]:
    parameters, (contacts, _) = results.record.parameters, _figures(results)
    names: dict[str, tuple[object, ...]] = {
        "figure 10": ("contacted-subscriptions",),
        "figure 11": ("contacted-events", parameters["events"]),
    }
    name = names.get(contacts, ("contacted", parameters["source"], parameters["peers"]))

    def at_most(share: float) -> Measure:
        return lambda seed: 100 * float((_shares(results, seed) <= share).mean())

    return tuple(
        results.compared(
            f"Events that contact at most {share:.0%} of the peers, %",
            paper_value(PAPER, str(name[0]), *name[1:], round(100 * share)) or UNSAID,
            at_most(share),
        )
        for share in SHARES
    )


def _load_numbers(results: StudyResults) -> tuple[PaperComparison, ...]:
    parameters, (_, load) = results.record.parameters, _figures(results)
    source, peers = parameters["source"], parameters["peers"]
    zones = degree = top = None
    if load == "figure 13":
        top = paper_value(PAPER, "load-subscriptions")
    if load == "figure 14":
        top = paper_value(PAPER, "load-events")
    if load.startswith("figure 12"):
        top, zones, degree = (
            paper_value(PAPER, name, source, peers) for name in ("load", "zones", "replication")
        )

    compared = results.compared
    return (
        compared(
            "Mean load of the most loaded tenth of the peers, %",
            top or UNSAID,
            lambda seed: 100 * _deciles(results, seed)[0],
        ),
        compared("Load of the most loaded peer, %", UNSAID, lambda seed: 100 * _loads(results, seed)[0]),
        compared("Place of that peer in the order of joins", NOT_STATED, partial(_most_loaded, results)),
        compared("Unique zones", zones or NOT_STATED, results.statistic("zones", "degree", len), digits=5),
        compared("Most peers of a zone", degree or UNSAID, results.statistic("zones", "degree", np.max)),
        compared(
            "Repeated visits of a zone by an event",
            "0, except with the basic algorithm",
            results.single("repeats"),
        ),
        compared(
            "Zones missed or visited unnecessarily, by one checked event in a hundred",
            "0",
            results.single("missed"),
        ),
        compared("Neighbours of a peer, mean", NOT_STATED, results.statistic("peers", "neighbours", np.mean)),
    )


# --- Plots


def _contacted(results: StudyResults) -> SweepChart:
    """Return the chart of events that contact at most a share of the peers."""
    marks = np.concatenate([np.arange(0, 20.5, 0.5), np.arange(22, 101, 2)])
    series = []
    for number, seed in enumerate(results.seeds):
        shares = np.sort(_shares(results, seed)) * 100
        part = np.searchsorted(shares, marks, side="right") / len(shares) * 100
        series.append(sweep_series(f"seed {seed}", number, x=marks, y=part))
    return SweepChart(
        "contacted",
        "Peers contacted to deliver an event",
        Axis("contacted part of the present peers, at most, %", high=60.0),
        Axis("events, %", high=100.0),
        tuple(series),
        of=_figures(results)[0],
    )


def _load(results: StudyResults) -> SweepChart:
    """Return the chart of the mean load of each tenth of the peers."""
    series = [
        sweep_series(
            f"seed {seed}", number, x=range(10, 101, 10), y=[100 * each for each in _deciles(results, seed)]
        )
        for number, seed in enumerate(results.seeds)
    ]
    peers = results.record.parameters["peers"]
    return SweepChart(
        "load",
        "Load of each tenth of the peers",
        Axis("peers up to this rank, %"),
        Axis("part of all messages since it joined that a peer receives, %"),
        tuple(series),
        of=_figures(results)[1],
        references=(Reference("equal load of all peers", 100 / peers, 100 / peers),),
    )


def _degrees(results: StudyResults) -> SweepChart:
    """Return the chart of zones by their number of peers."""
    series = []
    for number, seed in enumerate(results.seeds):
        degrees, zones = np.unique(results.column(seed, "zones", "degree"), return_counts=True)
        series.append(sweep_series(f"seed {seed}", number, x=degrees, y=zones))
    letter = "a" if results.record.parameters["source"] == "uniform" else "b"
    return SweepChart(
        "replication",
        "Peers of a zone",
        Axis("peers that hold the same zone"),
        Axis("zones", kind="logarithmic"),
        tuple(series),
        of=f"figure 15{letter}" if _figures(results)[0].startswith("figure 9") else "figure 15",
    )


def _notes(results: StudyResults) -> tuple[str, ...]:
    notes = [
        "An event contacts a peer if it visits one of its zones. Shares are of the peers present then.",
        "Load: the part of all messages since a peer joined that it received; counted are messages that route"
        " subscriptions and events, and that propagate events.",
        f"Order of subscriptions and events: {results.record.parameters.get('order', 'mixed')};"
        " the paper does not state it.",
    ]
    if results.record.parameters["source"] == "stocks":
        notes.append("The paper's quotes are not available; these are synthetic, with prices as skewed.")
    return tuple(notes)
