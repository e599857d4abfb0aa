"""Figures 7 to 14 of Scribe's paper of 2002, from the study of many groups, with the paper's numbers.

The data of the paper's curves is not available. The table and the plots have the numbers that its text gives.
"""

from collections.abc import Callable, Sequence

import numpy as np

from analysis.pages.charting.chart_model import Axis, ChartSeries
from analysis.pages.report.charts.sweep_charts import SweepChart, sweep_series
from analysis.pages.study.results import Measure, PaperComparison, StudyContent, StudyResults, Values

CURVE_POINTS = 400
PAPER_NODES = 100_000
PAPER_RDP = ((1.0, 0.022), (1.65, 0.5), (2.25, 0.8), (4.0, 0.98))
"""RDP, and the share of members with at most this value (IV.B)."""
PAPER_LINKS = 1_035_295
"""The description explains 20,000 of them between routers, and 200,000 to and from nodes (IV.D)."""
LAN_TO = "each node's LAN link counts as two link directions"


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
        *_join_numbers(results, "2.4", "4,031", "1"),
        *_link_facts(results),
    )
    return StudyContent(charts, beside, _notes(results))


def _bounded(results: StudyResults) -> StudyContent:
    probes, joins = results.single("probes"), results.single("members")
    compared = results.compared
    beside = (
        compared(
            "Most children table entries of a node", "64", results.statistic("nodes", "entries", np.max)
        ),
        *_join_numbers(results, "2.7", "4,728", "2.7 / 2.4 = 1.13"),
        compared(
            "Probes per join",
            "3",
            lambda seed: probes(seed) / joins(seed),
            "the paper's parent knows the delays to its children; here each is measured at its first use",
        ),
    )
    charts = (_delays(results), *_nodes(results, "8", "11"), _links(results, "figure 10"))
    return StudyContent(charts, (*beside, *_delay_numbers(results)), _notes(results))


def _small_groups(results: StudyResults) -> StudyContent:
    entries, packets, ratio = (
        ("8.5", "3.3", "2.1") if results.record.parameters["collapse"] else ("21.2", "6.1", "3.8")
    )
    ours, of_ip = results.single("scribe_packets"), results.single("ip_packets")
    compared = results.compared
    beside = (
        compared(
            "Children table entries of a node, mean", entries, results.statistic("nodes", "entries", np.mean)
        ),
        compared(
            "The same with unicasts from the root",
            "6.6",
            lambda seed: results.number(seed, "members") / _count(results),
        ),
        compared("Packets over a link of the paper, mean", packets, _per_link(results, "scribe"), _FEWER),
        compared("The same, IP multicast", "1.6", _per_link(results, "ip")),
        compared("The same, unicasts", "2.9", _per_link(results, "naive")),
        compared("Ratio of packets to those of IP multicast", ratio, lambda seed: ours(seed) / of_ip(seed)),
        *_link_facts(results),
    )
    return StudyContent((*_nodes(results, "12", "13"), _links(results, "figure 14")), beside, _notes(results))


# --- Numbers


def _count(results: StudyResults) -> int:
    return int(results.record.parameters["nodes"])


def _paper_links(results: StudyResults) -> int:
    """Return the paper's number of links: with fewer nodes there are fewer LAN links."""
    return PAPER_LINKS - 2 * (PAPER_NODES - _count(results))


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
    network = "GT-ITM's graphs are not available: here each domain is a random graph"
    tail = "a group of about eleven members with a near root: an extreme value of a long tail"
    return (
        compared("RAD at half of the groups", "1.68", statistic("groups", "rad", np.median), network),
        compared("RMD at half of the groups", "1.69", statistic("groups", "rmd", np.median)),
        compared("Greatest RAD", "2", statistic("groups", "rad", np.max), tail),
        compared("Greatest RMD", "4.26", statistic("groups", "rmd", np.max)),
        compared("RDP of the largest group, mean", "1.81", rdp(np.mean), "depends on the place of its root"),
        compared("RDP of the largest group, median", "1.65", rdp(np.median)),
        compared("Members with RDP below 2.25", "> 80 %", below(2.25), unit=" %"),
        compared("Members with RDP below 4", "> 98 %", below(4), unit=" %"),
        compared("Members that Scribe reaches faster than IP", "2.2 %", below(1), digits=2, unit=" %"),
    )


def _node_numbers(results: StudyResults) -> tuple[PaperComparison, ...]:
    papers = (
        ("tables", "Children tables of a node", "2.4", "2", "40"),
        ("entries", "Entries of a node", "6.2", "3", "1,059"),
    )
    why = "an extreme value of a long tail: the number of routes of the largest groups that meet at one node"
    return tuple(
        results.compared(
            f"{what}, {name}",
            paper,
            results.statistic("nodes", column, statistic),
            why if name == "most" else "",
        )
        for column, what, mean, middle, most in papers
        for name, paper, statistic in (
            ("mean", mean, np.mean),
            ("median", middle, np.median),
            ("most", most, np.max),
        )
    )


def _link_numbers(results: StudyResults) -> tuple[PaperComparison, ...]:
    packets, of_ip = results.single("scribe_packets"), results.single("ip_packets")
    compared, statistic = results.compared, results.statistic
    return (
        compared("Packets over all links, Scribe", "2,489,824", packets, digits=7),
        compared("Packets over all links, IP multicast", "758,853", of_ip, digits=6),
        compared("Their ratio", "3.28", lambda seed: packets(seed) / of_ip(seed)),
        compared("Most packets over a link direction, Scribe", "4,031", statistic("links", "scribe", np.max)),
        compared("The same, IP multicast", "950", statistic("links", "ip", np.max)),
        compared("The same, unicasts from the root", "≥ 100,000", statistic("links", "naive", np.max)),
        compared(
            "Packets over a link of the paper, mean, Scribe", "2.4", _per_link(results, "scribe"), _FEWER
        ),
        compared("The same, IP multicast", "0.7", _per_link(results, "ip")),
        compared("Packets over a link of the paper, median, Scribe", "0", _middle(results, "scribe"), _FEWER),
        compared("The same, IP multicast", "0", _middle(results, "ip")),
        compared(
            "Packets over a link direction here, median, Scribe", "", statistic("links", "scribe", np.median)
        ),
        compared("The same, IP multicast", "", statistic("links", "ip", np.median)),
    )


def _join_numbers(results: StudyResults, mean: str, most: str, ratio: str) -> tuple[PaperComparison, ...]:
    """Return the link stress of joins, which equals that of multicasts without the remover (IV.D, IV.E)."""
    joins, multicasts = results.single("joins_packets"), results.single("scribe_packets")
    return (
        results.compared(
            "Packets of joins over a link of the paper, mean", mean, _per_link(results, "joins")
        ),
        results.compared(
            "Most packets of joins over a link direction", most, results.statistic("links", "joins", np.max)
        ),
        results.compared(
            "Packets of joins relative to those of multicasts",
            ratio,
            lambda seed: joins(seed) / multicasts(seed),
        ),
    )


_FEWER = (
    "the paper has 1,035,295 links; its description explains 220,000. Means and medians are over its number"
    " of links, the others unused"
)


def _link_facts(results: StudyResults) -> tuple[PaperComparison, ...]:
    compared, single = results.compared, results.single
    return (
        compared("Link directions", "1,035,295", single("link_directions"), LAN_TO, digits=7),
        compared("Routers", "5,050", single("routers"), digits=6),
        compared("Delay of links between routers, mean, ms", "40.7", single("mean_link_delay_ms")),
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
                for number, (name, half, most) in enumerate((("RAD", 1.68, 2.0), ("RMD", 1.69, 4.26)))
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
            _paper_points("paper", 1, tuple((at, share * len(ratios)) for at, share in PAPER_RDP)),
        ),
    )


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
