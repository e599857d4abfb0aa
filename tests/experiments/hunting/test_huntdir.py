"""A hunt's folder: what is written is read back, and what is none of it is one clear line."""

import json
import os
from pathlib import Path

import pytest

from experiments.hunting.case import Case, Disturbance, Moment
from experiments.hunting.huntdir import Broken, HuntDirectory, Interesting, Progress
from experiments.json_files import write_json
from experiments.validated_json import to_json
from topologies.errors import InputError

CUT = Disturbance("cut", 1_000_000, 500_000, ("r0", "r1"), (), "forward")
CASE = Case(7, {"roles.proxy": 2, "topology": "ring-4"}, (CUT,))
SELDOM = Moment(1_234_567, ("r0/proxy-0", "r1/proxy-0"))
INTERESTING = Interesting(CASE, {"proxy EVENTS after 1": 12, "x": -1}, 99, ((CUT,), (CUT, CUT)), (SELDOM,))


@pytest.fixture
def directory(tmp_path: Path) -> HuntDirectory:
    made = HuntDirectory(tmp_path)
    made.make()
    return made


def test_the_corpus_is_read_back_and_goes_on_after_its_last_file(directory: HuntDirectory) -> None:
    for _ in range(3):
        directory.keep(INTERESTING)
    (directory.corpus / "000001.json").unlink()
    directory.keep(INTERESTING)
    assert sorted(file.name for file in directory.corpus.iterdir()) == [
        "000002.json",
        "000003.json",
        "000004.json",
    ]
    assert list(directory.kept()) == [INTERESTING] * 3


def test_a_corpus_of_before_there_was_lineage_can_be_read(directory: HuntDirectory) -> None:
    content = to_json(INTERESTING)
    del content["starving"], content["moments"]
    write_json(directory.corpus / "000001.json", content)
    [kept] = directory.kept()
    assert (kept.case, kept.starving, kept.moments) == (CASE, (), ())


def test_waiting_cases_are_stored_while_the_hunt_is_off(directory: HuntDirectory) -> None:
    progress = Progress(5, 12.5, causes={"lost": 2}, waiting=[Broken(4, CASE, ({"kind": "lost"},))])
    write_json(directory.progress_json, to_json(progress))
    assert directory.progress() == progress


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("starving", None),
        ("starving", 5),
        ("starving", {"a": 1}),
        ("moments", [{"at_us": 5, "processes": []}]),
        ("cost", 10**400),
        ("new", {"x": "y"}),
        ("odd", 1),
    ],
)
def test_a_case_that_is_none_is_refused_by_its_field(
    directory: HuntDirectory, field: str, value: object
) -> None:
    (directory.corpus / "000001.json").write_text(json.dumps(to_json(INTERESTING) | {field: value}))
    with pytest.raises(InputError, match=rf"000001\.json: {field}"):
        list(directory.kept())


@pytest.mark.parametrize(
    "content",
    [
        {"runs": "x"},
        {"runs": -5},
        {"elapsed_s": None},
        {"causes": 3},
        {"causes": [[1, 2]]},
        {"waiting": [{}]},
    ],
)
def test_progress_that_is_none_is_refused_by_its_field(directory: HuntDirectory, content: object) -> None:
    directory.progress_json.write_text(json.dumps(content))
    with pytest.raises(InputError, match=r"progress\.json: "):
        directory.progress()


@pytest.mark.parametrize("content", [{}, {"said": "lost"}, {"said": 1, "signature": "x"}])
def test_a_finding_that_says_nothing_is_refused(directory: HuntDirectory, content: object) -> None:
    folder = directory.findings / "01-lost"
    folder.mkdir()
    (folder / "finding.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match="should be a text"):
        directory.found()


def test_a_pipe_in_place_of_a_file_is_not_read(directory: HuntDirectory) -> None:
    os.mkfifo(directory.corpus / "000001.json")
    directory.progress_json.mkdir()
    with pytest.raises(InputError, match="is no file"):
        list(directory.kept())
    with pytest.raises(InputError, match="is no file"):
        directory.progress()
