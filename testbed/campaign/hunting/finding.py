"""A finding of a hunt: a folder with the experiment that reproduces it, the violation, and the messages."""

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from experiments.backend_names import LOCAL
from experiments.files.whole_files import write_whole
from experiments.hunting.case import HuntCase, case_from_json, case_to_json
from experiments.hunting.huntdir import HuntDirectory
from experiments.model import Experiment
from experiments.records.json_files import read_json, write_json
from experiments.roles import as_in_file
from testbed.campaign.hunting.counts import ReplayCounts, write_counts
from testbed.campaign.hunting.sentence import signature
from testbed.campaign.hunting.trials import case_request
from topologies.errors import InputError

RUN = "run"
"""The folder of a run that broke, in a finding on real processes."""
HUNTS_ALONE = "hunts also check for progress and agreement, which are no figures of a run"
EXPERIMENT, FINDING, TEXT, DIAGRAM = "experiment.yaml", "finding.json", "finding.txt", "diagram.txt"
WHEN = "experiment-when.yaml"
"""The same experiment with faults that wait for messages, if it breaks, too."""
PLAIN = re.compile(r"[^a-z0-9]+")
NAME_MAX = 60


@dataclass(frozen=True, slots=True)
class HuntFinding:
    """One violation, with the case that reproduces it.

    said: the violation as a sentence. verdict: of the whole analysis of such a run. waiting: the case with
    faults that wait for messages, if it breaks, too. counted: how often it broke on real processes.
    run_directory: of a run that broke on real processes.
    """

    case: HuntCase
    found_as: HuntCase
    violation: Mapping[str, Any]
    said: str
    diagram: str
    verdict: str
    run: int
    after_s: float
    shrinking_runs: int
    waiting: HuntCase | None = None
    counted: ReplayCounts | None = None
    run_directory: str | None = None

    @property
    def signature(self) -> str:
        """See `sentence.signature`."""
        return signature(self.violation, self.case)

    def to_json(self) -> dict[str, Any]:
        """Return the content of finding.json."""
        return {
            "signature": self.signature,
            "said": self.said,
            "violation": dict(self.violation),
            "verdict": self.verdict,
            "case": case_to_json(self.case),
            "found_as": case_to_json(self.found_as),
            "run": self.run,
            "after_s": round(self.after_s, 1),
            "shrinking_runs": self.shrinking_runs,
            "faults": len(self.case.disturbances),
        }


def write_finding(directory: HuntDirectory, base: Experiment, finding: HuntFinding, command: str) -> Path:
    """Write a finding's folder and return it. command: `cutset`, as it must be called. Raises OSError.

    finding.json is written last. A folder without it, left by a full disk, is no finding, and its number is
    used again.
    """
    numbers = (file.parent.name.partition("-")[0] for file in directory.findings.glob(f"*/{FINDING}"))
    number = max((int(each) for each in numbers if each.isdecimal()), default=0) + 1
    name = PLAIN.sub("-", finding.signature.lower()).strip("-")[:NAME_MAX].strip("-")
    folder = directory.findings / f"{number:02d}-{name}"
    folder.mkdir(exist_ok=True)
    written = experiment_yaml(base, finding.case, finding.said, f"finding-{number:02d}")
    write_whole(folder / EXPERIMENT, written)
    if finding.waiting is not None:
        waiting = experiment_yaml(base, finding.waiting, finding.said, f"finding-{number:02d}-when")
        write_whole(folder / WHEN, waiting)
    write_whole(folder / DIAGRAM, finding.diagram)
    how = _in_both(folder, command)
    if finding.verdict == "passed":
        how += f"each of these runs passes: {HUNTS_ALONE}\n"
    if finding.counted is not None:
        write_counts(folder, {LOCAL: finding.counted})
        how = f"it {finding.counted.text}\n{_on_processes(folder, command)}"
    if finding.run_directory is not None:
        shutil.move(finding.run_directory, folder / RUN)
    write_whole(folder / TEXT, f"{finding.said}\n\n{how}\n{finding.diagram}")
    write_json(folder / FINDING, finding.to_json())
    return folder


def read_finding(folder: Path) -> dict[str, Any]:
    """Read finding.json in a finding's folder. Raises InputError."""
    content = read_json(folder / FINDING)
    case_from_json(content.get("case"), folder / FINDING)
    for name in ("violation", "said", "signature"):
        if name not in content:
            raise InputError(str(folder / FINDING), None, name, "is missing")
    return content


def experiment_yaml(base: Experiment, case: HuntCase, said: str, name: str) -> str:
    """Return the experiment of a case as YAML, in the form in which people write it."""
    data = case_request(base, case).experiment.to_json()
    data["roles"] = as_in_file(data["roles"])
    for field in ("captures", "paper", "on", "repeat"):
        data.pop(field, None)
    data["name"] = name
    data["description"] = said[:500]
    known = {key: value for key, value in data.items() if value not in ({}, [], ())}
    text: str = yaml.safe_dump(known, sort_keys=False, allow_unicode=True, width=110)
    return text


def _on_processes(folder: Path, command: str) -> str:
    return (
        f"a run that broke, with packets:   {command} analyze {folder / RUN}\n"
        f"again:                            {command} run {folder / EXPERIMENT}\n"
        f"how often it breaks:              {command} hunt --replay {folder} --times 10\n"
    )


def _in_both(folder: Path, command: str) -> str:
    file = folder / EXPERIMENT
    return (
        f"in virtual time, always the same:   {command} run {file} --on simulator\n"
        f"on real processes, with packets:    {command} run {file}\n"
        f"how often on real processes:        {command} hunt --replay {folder} --times 10\n"
    )
