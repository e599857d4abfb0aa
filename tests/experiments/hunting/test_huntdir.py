"""A hunt's folder: files are read back, and invalid ones give one clear line."""

import json
import os
from pathlib import Path

import pytest

from experiments.hunting.case import HuntCase, HuntDisturbance
from experiments.hunting.huntdir import BrokenCase, HuntDirectory, HuntProgress
from experiments.records.json_files import write_json
from experiments.records.validated_json import to_json
from topologies.errors import InputError

CUT = HuntDisturbance("cut", 1_000_000, 500_000, ("r0", "r1"), (), "forward")
CASE = HuntCase(7, {"roles.proxy": 2, "topology": "ring-4"}, (CUT,))


@pytest.fixture
def directory(tmp_path: Path) -> HuntDirectory:
    made = HuntDirectory(tmp_path)
    made.make()
    return made


def test_waiting_cases_are_stored_while_the_hunt_is_off(directory: HuntDirectory) -> None:
    progress = HuntProgress(5, 12.5, causes={"lost": 2}, waiting=[BrokenCase(4, CASE, ({"kind": "lost"},))])
    write_json(directory.progress_json, to_json(progress))
    assert directory.progress() == progress


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
def test_invalid_progress_is_refused_with_its_field(directory: HuntDirectory, content: object) -> None:
    directory.progress_json.write_text(json.dumps(content))
    with pytest.raises(InputError, match=r"progress\.json: "):
        directory.progress()


@pytest.mark.parametrize("content", [{}, {"said": "lost"}, {"said": 1, "signature": "x"}])
def test_an_incomplete_finding_is_refused(directory: HuntDirectory, content: object) -> None:
    folder = directory.findings / "01-lost"
    folder.mkdir()
    (folder / "finding.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match="should be a text"):
        directory.found()


def test_a_pipe_in_place_of_a_file_is_not_read(directory: HuntDirectory) -> None:
    os.mkfifo(directory.progress_json)
    with pytest.raises(InputError, match="is not a regular file"):
        directory.progress()
