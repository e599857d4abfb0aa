"""Names of a series of runs by tests: one name for the same settings, never one for different ones."""

import re
from typing import Any

import pytest

from experiments.loader import read_experiment
from experiments.suite import overrides_of
from testbed.campaign.recording import ENTRY_MAX, entry_of
from testbed.run_selection import RunSelection
from tests.testbed.runner.live import write_experiment


def series(
    settings: dict[str, Any], experiment: str = "link-failure", on: str | None = None, links: str = "auto"
) -> str:
    file = read_experiment(experiment, overrides_of(settings), ("sweep", "repeat"))
    return entry_of(RunSelection.from_options(file, backend=on, links=links, seed=None, repeat=1), settings)


def test_an_experiment_as_it_is_gives_its_name():
    assert series({}) == series({}, on="local") == "link-failure"


def test_changed_settings_are_in_the_name_with_a_digest_at_the_end():
    settings = {"topology": "four-regions", "duration": "50s"}
    name = series(settings, on="simulator", links="relay")
    assert re.fullmatch("link-failure-duration-50s-links-relay-on-simulator-[0-9a-f]{8}", name)
    assert len(name) <= ENTRY_MAX
    assert name == series(dict(reversed(settings.items())), on="simulator", links="relay")


CUT = {"name": "cut", "at": "1s", "cut": ["r0", "r1"]}
VIRTUAL = {"duration": "8s", "faults": [CUT], "captures": "none"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({**VIRTUAL, "topology": "three-regions"}, {**VIRTUAL, "topology": "four-regions"}),
        ({"faults": [CUT]}, {"faults": [{**CUT, "at": "2s"}]}),
        ({"expect": ["events.lost == 1"]}, {"expect": ["events.lost >= 1"]}),
    ],
)
def test_other_settings_are_another_series(one, other):
    assert series(one) != series(other)


def test_another_place_and_other_links_are_another_series():
    found = {series({}), series({}, on="simulator"), series({}, links="relay"), series({}, links="netem")}
    assert len(found) == 4


def test_a_series_goes_on_when_its_folder_moves(tmp_path):
    names = set()
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
        path = write_experiment(tmp_path / folder)
        topology = path.parent / "two-regions.yaml"
        names.add(series({"topology": str(topology)}, str(path)))
    assert len(names) == 1


def test_files_of_one_name_in_two_folders_are_two_series(tmp_path):
    path = write_experiment(tmp_path)
    text = (path.parent / "two-regions.yaml").read_text()
    names = set()
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "net.yaml").write_text(text)
        names.add(series({"topology": str(tmp_path / folder / "net.yaml")}, str(path)))
    assert len(names) == 2
