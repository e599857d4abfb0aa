"""Quotations of papers about the experiments that runs reproduce, shown beside our numbers.

Keyed by the document and section that an experiment file names under `paper:`. All quotations are verbatim;
the assignment to our measures is our interpretation.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from analysis.pages.report.run_reader import Row


@dataclass(frozen=True, slots=True)
class PaperSection:
    """Quotations of one section. `words`: by kind of fault and measure; `panels`: by the chart's key."""

    citation: str
    words: Mapping[str, Mapping[str, str]]
    panels: Mapping[str, str] = field(default_factory=dict)


_SECTIONS = {
    ("sprinkler-2013", "5.3"): PaperSection(
        citation="Sprinkler (2013), section 5.3",
        words={
            "cut": {
                "applied_s": "The network outage results in the brief drop in throughput at time t = 19",
                "resubscribe_s": "the new advertisement messages from regions 0 and 1 arrive and regions 2 "
                "and 3 update their subscriptions accordingly",
                "switch_s": "The throughput recovers shortly after time t = 20",
                "catch_up_s": "The throughput increases for about five seconds before returning to normal, "
                "as regions 2 and 3 catch up.",
                "settled_s": "Latencies are slightly higher than before because the path to region 3 has "
                "greater latency.",
            },
            "restore": {
                "applied_s": "Note the slight glitch after time t = 41 when the link is restored",
                "returned_s": "regions 2 and 3 resume sending their events directly to one another",
                "settled_s": "latencies drop to the original level after a short period of adjustment",
            },
        },
        panels={"throughput": "figure 7a", "latency": "figure 7b", "topology": "figure 8"},
    ),
    ("sprinkler-2013", "3.3"): PaperSection(
        citation="Sprinkler (2013), section 3.3",
        words={
            "kill": {
                "detect_s": "In case a replica fails, it is removed from the chain.",
                "resubscribe_s": "If the head is removed, peer proxies and clients that try to publish "
                "events have to be notified.",
                "switch_s": "If it is the tail that is removed, a new tail ensues that has to set up new "
                "connections with the head nodes of its peer proxies.",
                "catch_up_s": "Both endpoints on each new connection exchange advertisements to allow the "
                "proxies to recover.",
                "lost": "no events can get lost until all replicas in the chain fail and lose their state",
            },
            "restart": {
                "applied_s": "Sprinkler allows recovery of a crashed replica, as well as adding a replica "
                "with no initial state.",
                "detect_s": "will start receiving the events that it missed",
                "settled_s": "Once the new tail is caught up, the old tail gives up its function and "
                "passes a token to the new replica.",
            },
        },
        panels={"topology": "figure 5a"},
    ),
}


def paper_section(experiment: Row) -> PaperSection | None:
    """Return the quotations for the paper that this experiment names, if any."""
    paper = experiment.get("paper") or {}
    return _SECTIONS.get((str(paper.get("document")), str(paper.get("section"))))
