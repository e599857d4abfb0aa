"""Table 1 of Meghdoot's paper under every interpretation of the paper's open points about joins."""

import numpy as np

from analysis.pages.study.results import StudyContent, StudyResults
from analysis.systems.papers import PaperComparison, paper_value

MEASURED = ("peers", "zones", "degree_max", "within_5_percent")


def page(results: StudyResults) -> StudyContent:
    """Return a row for each reading of each seed, those nearest to the paper first."""
    parameters = results.record.parameters
    paper = paper_value("meghdoot-2004", "zones", parameters["source"], parameters["peers"])
    rows = [row for seed in results.seeds for row in results.rows(seed, "readings").to_pylist()]
    rows.sort(key=lambda row: abs(np.log(row["zones"] / (paper.numbers[0] if paper else 1))))
    return StudyContent(
        (),
        tuple(
            PaperComparison(
                ", ".join(str(value) for name, value in row.items() if name not in MEASURED),
                "",
                f"{row['zones']} zones of at most {row['degree_max']} peers, "
                f"{row['within_5_percent']:.0%} of events",
            )
            for row in rows
        ),
        (
            "A reading: order, load of subscriptions, rule of splits, simulation event, wanted values."
            " Percentages are of events that contact at most 5 % of the peers.",
            f"The paper has {paper.text if paper else 'no'} zones.",
        ),
    )
