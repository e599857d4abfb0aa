"""Figures 7 to 14 of Scribe's paper of 2002, from the study of many groups, with the paper's numbers.

The data of the paper's curves is not available. The table and the plots have the numbers that its text gives.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from analysis.pages.charting.chart_model import Axis, ChartSeries
from analysis.pages.report.charts.sweep_charts import SweepChart, sweep_series
from analysis.pages.study.results import Measure, StudyContent, StudyResults, Values
from analysis.systems.papers import PaperComparison, PaperValue, paper_number, paper_value

CURVE_POINTS = 400
PAPER_NODES = 100_000
PAPER = "scribe-2002"


def page(results: StudyResults) -> StudyContent:
    """Return the study's charts and numbers."""
    parameters = results.record.parameters
    if parameters["group_size"]:
        return _small_groups(results)
    return _bounded(results) if parameters["entries_max"] else _many_groups(results)


def _many_groups(results: StudyResults) -> StudyContent:
    charts = (
        _sizes(results),
        _delays(results),
        _rdp(results),
        *_nodes(results, "8", "9"),
        _links(results, "figure 10"),
    )
    beside = (
        *_delay_numbers(results),
        *_node_numbers(results),
        *_link_numbers(results),
        *_join_numbers(results, "join-stress"),
        *_link_facts(results),
    )
    return StudyContent(charts, beside, _notes(results))


def _bounded(results: StudyResults) -> StudyContent:
    probes, joins = results.single("probes"), results.single("members")
    compared = results.compared
    beside = (
        compared(
            "Most children table entries of a node",
            _paper("bounded-entries"),
            results.statistic("nodes", "entries", np.max),
        ),
        *_join_numbers(results, "bounded-join-stress"),
        compared("Probes per join", _paper("bounded-probes"), lambda seed: probes(seed) / joins(seed)),
    )
    charts = (_delays(results), *_nodes(results, "8", "11"), _links(results, "figure 10"))
    same = _paper("bounded-others") or ""
    others = [replace(each, paper=same) for each in _delay_numbers(results)]
    return StudyContent(charts, (*beside, *others), _notes(results))


def _small_groups(results: StudyResults) -> StudyContent:
    kind = "collapse" if results.record.parameters["collapse"] else "scribe"
    of_ip, compared = results.single("ip_packets"), results.compared

    def ratio(packets: str) -> Measure:
        of_kind = results.single(f"{packets}_packets")
        return lambda seed: of_kind(seed) / of_ip(seed)

    to_ip = "Packets relative to those of IP multicast"
    beside = (
        compared(
            "Children table entries of a node, mean",
            _paper("small-entries", kind),
            results.statistic("nodes", "entries", np.mean),
        ),
        compared(
            "The same with unicasts from the root",
            _paper("small-entries", "naive"),
            lambda seed: results.number(seed, "members") / _count(results),
        ),
        compared(_PER_LINK, _paper("small-stress", kind), _per_link(results, "scribe")),
        compared(f"{_PER_LINK}, IP multicast", _paper("small-stress", "ip"), _per_link(results, "ip")),
        compared(f"{_PER_LINK}, unicasts", _paper("small-stress", "naive"), _per_link(results, "naive")),
        compared(to_ip, _paper("small-ratio", kind), ratio("scribe")),
        compared(f"{to_ip}, unicasts", _paper("small-ratio", "naive"), ratio("naive")),
        *_link_facts(results),
    )
    return StudyContent((*_nodes(results, "12", "13"), _links(results, "figure 14")), beside, _notes(results))


# --- Numbers


_PER_LINK = "Packets over a link of the paper, mean"
_KINDS = (("scribe", "Scribe"), ("ip", "IP multicast"))


def _paper(name: str, *keys: object) -> PaperValue | None:
    return paper_value(PAPER, name, *keys)


def _count(results: StudyResults) -> int:
    return int(results.record.parameters["nodes"])


def _paper_links(results: StudyResults) -> int:
    """Return the paper's number of links: with fewer nodes there are fewer LAN links."""
    return int(paper_number(PAPER, "links")) - 2 * (PAPER_NODES - _count(results))


def _per_link(results: StudyResults, kind: str) -> Measure:
    return lambda seed: results.number(seed, f"{kind}_packets") / _paper_links(results)


def _middle(results: StudyResults, kind: str) -> Measure:
    """Return the median over as many links as the paper has: those that are not known carry nothing."""

    def median(seed: int) -> float:
        loads = results.column(seed, "links", kind)
        unused = max(0, _paper_links(results) - len(loads))
        return float(np.median(np.concatenate([loads, np.zeros(unused, loads.dtype)])))

    return median


def _ratios(results: StudyResults, seed: int) -> Values:
    return results.column(seed, "members", "scribe_us") / results.column(seed, "members", "ip_us")


def _delay_numbers(results: StudyResults) -> tuple[PaperComparison, ...]:
    def rdp(statistic: Callable[[Values], float]) -> Measure:
        return lambda seed: float(statistic(_ratios(results, seed)))

    def below(ratio: float) -> Measure:
        return rdp(lambda each: 100 * (each < ratio).mean())

    compared, statistic = results.compared, results.statistic
    return (
        compared("RAD at half of the groups", _paper("rad", "half"), statistic("groups", "rad", np.median)),
        compared("RMD at half of the groups", _paper("rmd", "half"), statistic("groups", "rmd", np.median)),
        compared("Greatest RAD", _paper("rad", "most"), statistic("groups", "rad", np.max)),
        compared("Greatest RMD", _paper("rmd", "most"), statistic("groups", "rmd", np.max)),
        compared("RDP of the largest group, mean", _paper("rdp", "mean"), rdp(np.mean)),
        compared("RDP of the largest group, median", _paper("rdp", "median"), rdp(np.median)),
        compared("Members with RDP below 2.25", _paper("rdp-below", 2.25), below(2.25), unit=" %"),
        compared("Members with RDP below 4", _paper("rdp-below", 4), below(4), unit=" %"),
        compared(
            "Members that Scribe reaches faster than IP",
            _paper("rdp-below", 1),
            below(1),
            digits=2,
            unit=" %",
        ),
    )


def _node_numbers(results: StudyResults) -> tuple[PaperComparison, ...]:
    return tuple(
        results.compared(
            f"{what}, {name}", _paper(column, name), results.statistic("nodes", column, statistic)
        )
        for column, what in (("tables", "Children tables of a node"), ("entries", "Entries of a node"))
        for name, statistic in (("mean", np.mean), ("median", np.median), ("most", np.max))
    )


def _link_numbers(results: StudyResults) -> tuple[PaperComparison, ...]:
    packets, of_ip = results.single("scribe_packets"), results.single("ip_packets")
    compared, statistic = results.compared, results.statistic
    middle = f"{_PER_LINK[:-4]}median"
    most = "Most packets over a link direction"
    here = "Packets over a link direction here, median"
    return (
        compared("Packets over all links, Scribe", _paper("packets", "scribe"), packets, digits=7),
        compared("Packets over all links, IP multicast", _paper("packets", "ip"), of_ip, digits=6),
        compared("Their ratio", _paper("packets", "ratio"), lambda seed: packets(seed) / of_ip(seed)),
        *(
            compared(f"{most}, {name}", _paper("stress-most", kind), statistic("links", kind, np.max))
            for kind, name in (*_KINDS, ("naive", "unicasts from the root"))
        ),
        *(
            compared(f"{_PER_LINK}, {name}", _paper("stress", kind), _per_link(results, kind))
            for kind, name in _KINDS
        ),
        *(
            compared(f"{middle}, {name}", _paper("stress-median", kind), _middle(results, kind))
            for kind, name in _KINDS
        ),
        *(compared(f"{here}, {name}", None, statistic("links", kind, np.median)) for kind, name in _KINDS),
    )


def _join_numbers(results: StudyResults, name: str) -> tuple[PaperComparison, ...]:
    """Return the link stress of joins, which equals that of multicasts without the remover (IV.D, IV.E)."""
    joins, multicasts = results.single("joins_packets"), results.single("scribe_packets")
    return (
        results.compared(
            "Packets of joins over a link of the paper, mean",
            _paper(name, "mean"),
            _per_link(results, "joins"),
        ),
        results.compared(
            "Most packets of joins over a link direction",
            _paper(name, "most"),
            results.statistic("links", "joins", np.max),
        ),
        results.compared(
            "Packets of joins relative to those of multicasts",
            _paper(name, "ratio"),
            lambda seed: joins(seed) / multicasts(seed),
        ),
    )


def _link_facts(results: StudyResults) -> tuple[PaperComparison, ...]:
    compared, single = results.compared, results.single
    return (
        compared("Link directions", _paper("links"), single("link_directions"), digits=7),
        compared("Routers", _paper("routers"), single("routers"), digits=6),
        compared(
            "Delay of links between routers, mean, ms", _paper("link-delay"), single("mean_link_delay_ms")
        ),
    )


def _notes(results: StudyResults) -> tuple[str, ...]:
    found = [
        "IP multicast is computed: the union of unicast routes from the root to the members. Packets of joins"
        " are those of JOIN and of the messages that move children, without answers, which the paper does not"
        " have, and without probes.",
        "The overlay is constructed directly: each entry is the nearest suitable node. The nodes themselves"
        " execute all joins and multicasts.",
    ]
    if len(results.seeds) > 1:
        found.append("Numbers are medians over seeds, with minimum and maximum; plots show the first seed.")
    if _count(results) not in {PAPER_NODES, 50_000}:
        found.append(f"With {_count(results):,} nodes, fewer than the paper's.")
    return tuple(found)


# --- Plots


def _curve(name: str, number: int, values: Values) -> ChartSeries:
    """Return values, and for each the number of values that are not greater."""
    ordered = np.sort(values)
    at = np.unique(np.linspace(0, len(ordered) - 1, CURVE_POINTS).astype(int))
    return sweep_series(name, number, x=ordered[at], y=at + 1)


def _sizes(results: StudyResults) -> SweepChart:
    seed = results.seeds[0]
    x, y = (results.column(seed, "groups", name) for name in ("rank", "size"))
    return SweepChart(
        "figure-6",
        "Group size by rank",
        Axis("rank", kind="logarithmic"),
        Axis("members", kind="logarithmic"),
        (sweep_series("groups", 0, x=x, y=y),),
        of="figure 6",
    )


def _delays(results: StudyResults) -> SweepChart:
    seed, count = results.seeds[0], int(results.number(results.seeds[0], "groups"))
    return SweepChart(
        "figure-7",
        "Delay penalty by group",
        Axis("delay relative to IP multicast"),
        Axis("groups with at most this value, cumulative"),
        (
            *(
                _curve(name.upper(), number, results.column(seed, "groups", name))
                for number, name in enumerate(("rad", "rmd"))
            ),
            *(
                _paper_points(f"{name}, paper", number, ((half, count / 2), (most, count)))
                for number, name in enumerate(("RAD", "RMD"))
                for half, most in [[paper_number(PAPER, name.lower(), part) for part in ("half", "most")]]
            ),
        ),
        of="figure 7",
    )


def _paper_points(name: str, number: int, points: Sequence[tuple[float, float]]) -> ChartSeries:
    """Return the points that the paper's text gives."""
    x, y = zip(*points, strict=True)
    return sweep_series(name, number, x=x, y=y, form="dots")


def _rdp(results: StudyResults) -> SweepChart:
    ratios = _ratios(results, results.seeds[0])
    return SweepChart(
        "rdp",
        "Delay penalty of each member of the largest group",
        Axis("delay relative to IP unicast"),
        Axis("members with at most this value, cumulative"),
        (
            _curve("RDP", 0, ratios),
            _paper_points("paper", 1, _rdp_points(len(ratios))),
        ),
    )


def _rdp_points(members: int) -> list[tuple[float, float]]:
    """Return the paper's values of RDP, each with the number of members at most at it."""
    shares = [(at, paper_number(PAPER, "rdp-below", at)) for at in (1, 2.25, 4)]
    shares.insert(1, (paper_number(PAPER, "rdp", "median"), 50.0))
    return [(at, percent / 100 * members) for at, percent in shares]


def _nodes(results: StudyResults, tables: str, entries: str) -> tuple[SweepChart, ...]:
    seed = results.seeds[0]
    return tuple(
        SweepChart(
            f"figure-{figure}",
            f"{title} of a node",
            Axis(title.lower()),
            Axis("nodes", kind="logarithmic"),
            (_histogram(results.column(seed, "nodes", column)),),
            of=f"figure {figure}",
        )
        for figure, column, title in (
            (tables, "tables", "Children tables"),
            (entries, "entries", "Entries of children tables"),
        )
    )


def _histogram(values: Values) -> ChartSeries:
    found, counts = np.unique(values, return_counts=True)
    return sweep_series("nodes", 0, x=found, y=counts)


def _links(results: StudyResults, figure: str) -> SweepChart:
    seed = results.seeds[0]
    named = (("Scribe", "scribe"), ("IP multicast", "ip"), ("unicasts", "naive"), ("joins", "joins"))
    series = []
    for number, (name, column) in enumerate(named):
        loads = results.column(seed, "links", column, lan=False)
        series.append(_curve(name, number, loads[loads > 0]))
    return SweepChart(
        figure.replace(" ", "-"),
        "Link stress, one event to each group",
        Axis("packets over a link direction between routers", kind="logarithmic"),
        Axis("link directions with at most this value, cumulative"),
        tuple(series),
        of=figure,
        note="Unused directions are left out, as in the paper, and LAN links.",
    )
