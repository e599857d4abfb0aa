"""The papers' numbers: read from one file, with place and unit."""

import pytest

from analysis.systems.papers import FILE, paper_number, paper_value, values_of
from topologies.document import read_document

PAPERS = read_document(FILE).data


def test_a_value_has_its_place_and_its_numbers():
    zones = paper_value("meghdoot-2004", "zones", "stocks", 10_000)
    assert (zones.text, zones.where, zones.numbers) == ("9,323", "table 1, 5.4", (9323.0,))
    assert paper_value("sprinkler-2013", "peak").numbers == (2.6, 2.7)
    assert paper_value("scribe-2002", "stress-most", "naive").text == "≥ 100,000"
    assert paper_value("scribe-2002", "rdp-below", 2.25).text == "> 80 %"
    assert paper_number("meghdoot-2004", "load", "stocks", 100) == 5


def test_values_missing_in_a_paper_are_none():
    assert paper_value("meghdoot-2004", "zones", "uniform", 200) is None
    with pytest.raises(AssertionError, match="has no zoness"):
        paper_value("meghdoot-2004", "zoness", "uniform", 100)


@pytest.mark.parametrize("paper", PAPERS)
def test_each_value_of_the_file_is_shown_under_its_own_name(paper):
    values = values_of(paper)
    assert len({value.key for value in values}) == len(values) > 4
    assert all(value.text and value.where and value.what for value in values)
