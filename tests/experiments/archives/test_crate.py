"""A packed run describes itself as a Process Run Crate, and the validator of that profile agrees."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments.archives.crate import CRATE, packed_files
from experiments.archives.packing import pack
from experiments.archives.unpacking import unpacked
from experiments.records.run_record import Outcome, RunRecord, Times, record_to_json
from experiments.records.rundir import RunDirectory
from node.core.program import Image, Program, Programs
from tests.experiments.small_experiment import GOOD
from tests.refusals import refusal
from tests.run_json import ZERO_NS, little_run
from tests.virtual_runs import experiment_in, simulated

VALIDATOR = Path(sys.prefix) / "crate-validator"
LICENSE, PUBLISHER = "https://spdx.org/licenses/CC-BY-4.0", "A Lab <https://lab.example.org>"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
MACHINES = replace(little_run(), commit=f"{COMMIT}-changed")
KILLED = replace(MACHINES, outcome=None, times=Times(started_ns=ZERO_NS, zero_ns=ZERO_NS + 1_234_567_890))
IN_IMAGE = Program((), image=Image("/images/broker.tar", f"sha256:{COMMIT:0>64}"))
PROGRAMS = Programs("packed.yaml", "/packed", (), {"broker": IN_IMAGE, "second": IN_IMAGE})
RECORDS = {
    "image": replace(MACHINES, plan=replace(MACHINES.plan, programs=PROGRAMS)),
    "completed": replace(MACHINES, machines=()),
    "machines": MACHINES,
    "crashed": replace(MACHINES, outcome=Outcome.CRASHED, problems=("a warning", "the relay died")),
    "interrupted": replace(MACHINES, outcome=Outcome.INTERRUPTED),
    "killed": KILLED,
    "planned": replace(KILLED, times=Times()),
}


def make_run(parent: Path, kind: str, record: RunRecord) -> RunDirectory:
    run = RunDirectory(parent / f"20260314T020000Z-{kind}-0a1b2c")
    run.make()
    run.run_json.write_text(json.dumps(record_to_json(record)))
    return run


def described(run: RunDirectory, folder: Path, **given: str) -> tuple[Path, dict[str, Any]]:
    """Pack and unpack a run; return the folder and the entities of its description, by @id."""
    pack(run.path, folder / "run.tar.zst", captures=True, given=given)
    place, _ = unpacked(folder / "run.tar.zst", folder / "there")
    graph = json.loads((place / CRATE).read_text())["@graph"]
    assert len({each["@id"] for each in graph}) == len(graph)
    return place, {each["@id"]: each for each in graph}


def test_the_images_of_programs_have_their_digests(tmp_path: Path) -> None:
    _, entities = described(make_run(tmp_path, "image", RECORDS["image"]), tmp_path)
    reference = entities["#run"]["containerImage"]
    assert entities[reference["@id"]] == {
        **reference,
        "@type": "ContainerImage",
        "additionalType": {"@id": "https://w3id.org/ro/terms/workflow-run#DockerImage"},
        "name": "broker.tar",
        "sha256": f"{COMMIT:0>64}",
    }


@pytest.mark.slow
def test_the_validator_accepts_the_crate_and_reports_missing_fields(tmp_path: Path) -> None:
    (tmp_path / "virtual").mkdir()
    runs = [make_run(tmp_path, kind, RECORDS[kind]) for kind in ("image", "killed")]
    virtual = simulated(experiment_in(tmp_path, GOOD.replace("30s", "21s")), tmp_path / "virtual")
    runs.append(virtual)
    (runs[0].captures / "r0-r1@r0 100 %: a#b?.pcap").write_bytes(b"packets")
    sweep = tmp_path / "20260314T020000Z-sweep-0a1b2c"
    make_run(sweep / "points", "point", MACHINES).path.rename(sweep / "points" / "1-rate=5-r0")
    (sweep / "sweep.json").write_text(json.dumps({"started_ns": ZERO_NS, "commit": COMMIT}))
    folders, starts = [], {}
    for run in [*runs, RunDirectory(sweep)]:
        place, found = described(run, tmp_path, license=LICENSE, publisher=PUBLISHER)
        folders.append(str(place))
        starts[run.name] = found["#run"]["startTime"] if "#run" in found else None
    made = virtual.name  # a run in virtual time took place when it was made
    assert starts[made] == f"{made[:4]}-{made[4:6]}-{made[6:11]}:{made[11:13]}:{made[13:15]}.000+00:00"
    without, _ = described(runs[0], tmp_path / "virtual")
    program = Path(__file__).with_name("crate_validator.py")
    assert VALIDATOR.is_dir(), "make test sets it up"
    done = subprocess.run(
        [sys.executable, program, tmp_path / "cache", *folders, without],
        env={**os.environ, "PYTHONPATH": str(VALIDATOR)},
        stdout=subprocess.PIPE,
        check=True,
    )
    found = json.loads(done.stdout)
    assert len(found) == 5
    missing = "\n".join(found.pop(str(without)))
    assert "REQUIRED: The Root Data Entity MUST have a `license`" in missing, "it can fail"
    from_a_file = {folders[0]: ["RECOMMENDED: The ContainerImage SHOULD have a registry"]}
    assert found == {folder: [] for folder in folders} | from_a_file


@pytest.mark.parametrize(
    ("kind", "status", "error", "end"),
    [
        ("completed", "Completed", None, "2023-11-14T22:13:21.000+00:00"),
        ("crashed", "Failed", "crashed: the relay died", "2023-11-14T22:13:21.000+00:00"),
        ("interrupted", "Failed", "interrupted", "2023-11-14T22:13:21.000+00:00"),
        ("killed", "Failed", "killed before its end was recorded", "2023-11-14T22:13:21.234+00:00"),
        ("planned", "Failed", "killed before its end was recorded", "2026-03-14T02:00:00.000+00:00"),
    ],
)
def test_the_crate_has_the_status_and_the_end_of_the_run(
    tmp_path: Path, kind: str, status: str, error: str | None, end: str
) -> None:
    _, found = described(make_run(tmp_path, kind, RECORDS[kind]), tmp_path)
    action = found["#run"]
    assert action["actionStatus"] == f"http://schema.org/{status}ActionStatus"
    assert action.get("error") == error
    assert action["endTime"] == end
    program = found[action["instrument"]["@id"]]
    assert program["url"] == f"https://identifiers.org/swh:1:rev:{COMMIT}"
    assert program["softwareVersion"] == f"{COMMIT}-changed"


def test_a_given_licence_replaces_that_of_the_experiment(tmp_path: Path) -> None:
    stated = {"name": "small", "publication": {"license": "https://mine.example.org", "publisher": PUBLISHER}}
    run = make_run(tmp_path, "stated", replace(MACHINES, experiment=stated))
    _, found = described(run, tmp_path)
    assert found["./"]["license"] == {"@id": "https://mine.example.org"}
    assert found["https://lab.example.org"]["name"] == "A Lab"
    (tmp_path / "other").mkdir()
    _, found = described(run, tmp_path / "other", license=LICENSE)
    assert found["./"]["license"] == {"@id": LICENSE}
    assert found["#run"]["agent"] == {"@id": "https://lab.example.org"}


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("license", "CC-BY-4.0", "should be a URL, as https://spdx.org/licenses/CC-BY-4.0, not 'CC-BY-4.0'"),
        ("publisher", "A Lab", "should be `NAME <URL>`, not 'A Lab'"),
    ],
)
def test_an_invalid_licence_or_publisher_is_refused(tmp_path: Path, field: str, value: str, why: str) -> None:
    run = make_run(tmp_path, "completed", MACHINES)
    assert refusal(described, run, tmp_path, **{field: value}) == f"--{field}: {field}: {why}"
    assert not (tmp_path / "run.tar.zst").exists()


def test_file_names_that_are_not_valid_urls_are_escaped_reversibly(tmp_path: Path) -> None:
    run = make_run(tmp_path, "completed", MACHINES)
    (run.captures / "r0-r1@r0 100 %: a#b?.pcap").write_bytes(b"packets")
    place, found = described(run, tmp_path)
    assert "captures/r0-r1@r0%20100%20%25%3A%20a%23b%3F.pcap" in found
    listed = packed_files(json.loads((place / CRATE).read_text()))
    assert listed["captures/r0-r1@r0 100 %: a#b?.pcap"].size == 7
