from analysis.systems.catalog import STUDY_PAGES
from node.systems import studies_of, systems


def test_every_study_has_a_page() -> None:
    assert set(STUDY_PAGES) == {name for system in systems() for name in studies_of(system)}
