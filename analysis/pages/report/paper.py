"""Quotations of papers about the experiments that runs reproduce, from `paper.yaml`."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from pydantic import RootModel

from analysis.pages.report.run_reader import Row
from topologies.document import read_document, validated
from topologies.strict import StrictModel

FILE = Path(__file__).with_suffix(".yaml")


class PaperSection(StrictModel):
    """Quotations of one section. words: by kind of fault and measure; figures: by the chart's key."""

    citation: str
    words: Mapping[str, Mapping[str, str]]
    figures: Mapping[str, str] = {}


class _Quotations(RootModel[dict[str, PaperSection]]):
    """The content of the file: sections by document and number."""


def paper_section(experiment: Row) -> PaperSection | None:
    """Return the quotations for the paper that this experiment names, if any."""
    paper = experiment.get("paper") or {}
    return _sections().get(f"{paper.get('document')} {paper.get('section')}")


@cache
def _sections() -> dict[str, PaperSection]:
    return validated(_Quotations, read_document(FILE)).root
