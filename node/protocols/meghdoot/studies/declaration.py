"""The studies of Meghdoot: its paper's figures at the paper's size."""

from node.core.declaration import Study
from node.protocols.meghdoot.studies.parameters import FailuresParameters, PaperParameters


def _of_paper(description: str, parameters: PaperParameters) -> Study:
    return Study(
        description,
        parameters,
        "node.protocols.meghdoot.studies.paper:execute",
        "analysis.systems.meghdoot_paper:page",
    )


STUDIES = {
    "meghdoot-uniform": _of_paper(
        "peers contacted, load and replication, uniform events (figures 9a, 12a, 15a, table 1)",
        PaperParameters(),
    ),
    "meghdoot-stocks": _of_paper(
        "the same with quotes of stocks (figures 9b, 12b, 15b, table 1)",
        PaperParameters(events=115_353, source="stocks"),
    ),
    "meghdoot-subscriptions": _of_paper(
        "the same with more subscriptions (figures 10 and 13; --set subscriptions=25000 to 150000)",
        PaperParameters(subscriptions=150_000),
    ),
    "meghdoot-events": _of_paper(
        "the same with more events (figures 11 and 14; --set events=200000 to 500000)",
        PaperParameters(subscriptions=50_000, events=200_000),
    ),
    "meghdoot-failures": Study(
        "failure of a tenth of all peers at once: events missed and late; not in the paper",
        FailuresParameters(),
        "node.protocols.meghdoot.studies.failures:execute",
        "analysis.systems.meghdoot_failures:page",
    ),
}
