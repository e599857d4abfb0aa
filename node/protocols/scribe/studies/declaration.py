"""The studies of Scribe: the papers' figures at the papers' size."""

from dataclasses import replace

from node.core.declaration import Study
from node.protocols.scribe.studies.parameters import (
    ChurnParameters,
    DepthParameters,
    GroupsParameters,
    JoinsParameters,
    RoutesParameters,
)

BOUND = 64
"""Entries of a node, above which it is overloaded (2002, IV.E)."""
BATCH = 50
"""Number of simultaneous joins: so few that a node mostly delegates one child at a time."""
SMALL = GroupsParameters(nodes=50_000, groups=30_000, group_size=11)
"""2002, IV.F."""


def _of_groups(description: str, parameters: GroupsParameters) -> Study:
    return Study(
        description,
        parameters,
        "node.protocols.scribe.studies.groups:execute",
    )


STUDIES = {
    "scribe-churn": Study(
        "sessions of 5 to 120 minutes, and a minute without a domain's transit links; not in the papers",
        ChurnParameters(),
        "node.protocols.scribe.studies.churn:execute",
    ),
    "scribe-joins": Study(
        "an overlay of 10,000 nodes by joins, compared with the same one built at once",
        JoinsParameters(),
        "node.protocols.scribe.studies.joins:execute",
    ),
    "scribe-routes": Study(
        "hops, distance and convergence of routes with 1,000 to 100,000 nodes (2001 and 2002, section 2)",
        RoutesParameters(),
        "node.protocols.scribe.studies.routes:execute",
    ),
    "scribe-depth": Study(
        "depth of a topic's tree by subscribers, with and without growth by load (2001, figure 3)",
        DepthParameters(),
        "node.protocols.scribe.studies.depth:execute",
    ),
    "scribe-groups": _of_groups("1,500 groups on 100,000 nodes (2002, figures 7 to 10)", GroupsParameters()),
    "scribe-groups-bounded": _of_groups(
        "the same with the bottleneck remover (2002, figure 11)",
        GroupsParameters(entries_max=BOUND, batch=BATCH),
    ),
    "scribe-small-groups": _of_groups("30,000 groups of 11 on 50,000 nodes (2002, figures 12 to 14)", SMALL),
    "scribe-small-groups-collapse": _of_groups(
        "the same with collapsed paths (2002, figures 12 to 14)", replace(SMALL, collapse=True)
    ),
}
