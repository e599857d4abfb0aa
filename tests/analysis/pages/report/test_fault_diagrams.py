"""The diagrams of the messages around each fault, in the page and beside it."""

import base64
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from analysis.pages.report import fault_diagrams
from analysis.pages.report.fault_diagrams import write_diagrams
from analysis.pages.report.run_reader import read_record
from experiments.records.rundir import RunDirectory

Reported = Callable[[str], RunDirectory]


def test_each_fault_has_its_picture_in_the_page_and_beside_it(reported: Reported) -> None:
    run = reported("passed")
    page = run.report_html.read_text()
    embedded = [
        base64.b64decode(one).decode()
        for one in re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', page)
    ]
    linked = re.findall(r'href="(figures/[^"]+)"', page)
    assert linked == ["figures/diagram-cut.svg", "figures/diagram-restore.svg"]
    assert embedded == [(run.path / path).read_text() for path in linked]


def test_the_page_says_in_words_what_a_picture_shows(reported: Reported) -> None:
    page = reported("passed").report_html.read_text()
    first = re.search(r'alt="([^"]+)"', page)
    assert first
    assert re.fullmatch(
        r"\d+ messages between r0-proxy-0, r2-proxy-0, r3-proxy-0, 18\.75 to 20\.\d+ s", first[1]
    )


@pytest.mark.parametrize("name", ["uncaptured", "crashed", "undisturbed"])
def test_without_messages_or_faults_there_is_no_picture(reported: Reported, name: str) -> None:
    run = reported(name)
    assert "diagrams" not in re.findall(r'id="(\w+)"', run.report_html.read_text())
    assert not list(run.figures.glob("diagram-*"))


def test_only_the_first_of_many_faults_are_drawn(
    fresh_run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fault_diagrams, "DIAGRAMS_MAX", 1)
    (only,) = write_diagrams(read_record(fresh_run), fresh_run)
    assert (only.fault, only.path) == ("cut", "figures/diagram-cut.svg")
    assert Path(fresh_run.path / only.path).read_text() == only.picture.svg
