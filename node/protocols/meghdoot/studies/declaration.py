"""The studies of Meghdoot: its paper's figures at the paper's size."""

from collections.abc import Mapping
from typing import Any

from node.core.declaration import Study
from node.protocols.meghdoot.studies.parameters import (
    FailuresParameters,
    HopsParameters,
    PaperParameters,
    ReadingsParameters,
)

SIZES = tuple({"peers": peers} for peers in (100, 1_000, 10_000))

_LARGE = {"peers": 1_000, "simulation_event": "action", "wanted": "quotes"}
_STORED = {"order": "subscriptions-first", "load_counts": "stored"}
_READ: tuple[Mapping[str, Any], ...] = (
    {"peers": 100},
    {**_LARGE, "order": "mixed", "load_counts": "matching"},
    {**_LARGE, **_STORED},
    {**_LARGE, **_STORED, "peers": 10_000, "split_rule": "less-work"},
)
"""Readings that are tried: all with 100 peers, two with 1,000, the best with 10,000."""


def _of_paper(
    description: str, parameters: PaperParameters, points: tuple[Mapping[str, Any], ...] = SIZES
) -> Study:
    return Study(
        description,
        parameters,
        "node.protocols.meghdoot.studies.paper:execute",
        points,
    )


STUDIES = {
    "meghdoot-uniform": _of_paper(
        "peers contacted, load and replication, uniform events (figures 9a, 12a, 15a, table 1)",
        PaperParameters(),
    ),
    "meghdoot-stocks": _of_paper(
        "the same with synthetic quotes of stocks (figures 9b, 12b, 15b, table 1)",
        PaperParameters(events=115_353, source="stocks"),
    ),
    "meghdoot-subscriptions": _of_paper(
        "the same with more subscriptions (figures 10 and 13; --set subscriptions=25000 to 150000)",
        PaperParameters(subscriptions=150_000),
        tuple({"subscriptions": count} for count in range(25_000, 150_001, 25_000)),
    ),
    "meghdoot-events": _of_paper(
        "the same with more events (figures 11 and 14; --set events=200000 to 500000)",
        PaperParameters(subscriptions=50_000, events=200_000),
        tuple({"events": count} for count in range(200_000, 500_001, 100_000)),
    ),
    "meghdoot-readings": Study(
        "zones under every reading of what the paper leaves open about joins (table 1)",
        ReadingsParameters(),
        "node.protocols.meghdoot.studies.readings:execute",
        tuple({"source": source, **readings} for source in ("uniform", "stocks") for readings in _READ),
    ),
    "meghdoot-hops": Study(
        "hops of routes over the number of peers and of dimensions (2.2)",
        HopsParameters(),
        "node.protocols.meghdoot.studies.hops:execute",
    ),
    "meghdoot-failures": Study(
        "failure of a tenth of all peers at once: events missed and late; not in the paper",
        FailuresParameters(),
        "node.protocols.meghdoot.studies.failures:execute",
    ),
}
