"""The folder of a hunt: its experiment, progress and findings. Files are replaced whole, so that an
interrupted hunt can resume.

    hunt.json             the experiment, and how the hunt is made
    progress.json         how many cases were run, and what was seen
    findings/<nn>-<name>/ experiment.yaml, experiment-when.yaml, finding.json, finding.txt, diagram.txt
    runs/<run>/           for a hunt on real processes: runs with a breach, and their packets
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field

from experiments.files.plain_name import Below
from experiments.hunting.case import HuntCase
from experiments.records.json_files import read_json
from experiments.records.validated_json import STRICT, Count, Free, from_json
from topologies.errors import InputError

HUNTS = "hunts"
"""The folder of hunts, in the folder of runs."""
FINDINGS_MAX = 200


@dataclass(frozen=True, slots=True)
class BrokenCase:
    """A case whose run had a breach, before it is shrunk. number: of the run. violations: from the oracle.
    directory: of a run on real processes.
    """

    number: Count
    case: HuntCase
    violations: tuple[Free, ...]
    directory: str | None = None


@dataclass(slots=True)
class HuntProgress:
    """The progress of a hunt.

    elapsed_s: over all sessions. invalid: runs on real processes for which the machine was too slow. causes:
    how often each cause was seen; shrunk: how often it was shrunk. waiting: cases to shrink.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    runs: Count = 0
    elapsed_s: Annotated[float, Field(ge=0, le=1e9)] = 0.0
    refused: Count = 0
    unfinished: Count = 0
    invalid: Count = 0
    violations: Count = 0
    unconfirmed: Count = 0
    causes: dict[str, Count] = field(default_factory=dict)
    shrunk: dict[str, Count] = field(default_factory=dict)
    waiting: list[BrokenCase] = field(default_factory=list)

    @property
    def usable_runs(self) -> int:
        """Runs that allow a conclusion about the system."""
        return self.runs - self.refused - self.unfinished - self.invalid

    def unusable_reason(self) -> str:
        """Return one line that says why no run was valid."""
        why = {
            "refused": self.refused,
            "did not finish": self.unfinished,
            "on which the machine fell behind": self.invalid,
        }
        reasons = ", ".join(f"{count} {what}" for what, count in why.items() if count)
        return f"none of the {self.runs} runs was usable{f': {reasons}' if reasons else ''}"


@dataclass(frozen=True, slots=True)
class HuntDirectory:
    """A hunt's folder, which may not exist yet."""

    path: Path

    hunt_json = Below("hunt.json")  # the experiment and the hunt's options
    progress_json = Below("progress.json")  # the progress
    findings = Below("findings")  # the folder of findings
    runs = Below("runs")  # the folder of runs on real processes

    @property
    def others(self) -> list[str]:
        """Names of files in the folder that belong to no hunt."""
        ours = {self.hunt_json, self.progress_json, self.findings, self.runs}
        there = self.path.iterdir() if self.path.is_dir() else ()
        return sorted(each.name for each in there if each not in ours and not each.name.startswith("."))

    def make(self) -> None:
        """Make the folder, as far as it is not there. Raises OSError."""
        for folder in (self.path, self.findings):
            folder.mkdir(parents=True, exist_ok=True)

    def progress(self) -> HuntProgress:
        """Read the progress, which is empty before the start. Raises InputError."""
        if not self.progress_json.exists():
            return HuntProgress()
        return from_json(HuntProgress, _read(self.progress_json), self.progress_json)

    def found(self) -> list[tuple[Path, dict[str, Any]]]:
        """Return the folder of each finding and its finding.json, in order. Raises InputError."""
        found = []
        for file in sorted(self.findings.glob("*/finding.json"))[:FINDINGS_MAX]:
            content = _read(file)
            for name in ("said", "signature"):
                if not isinstance(content.get(name), str):
                    raise InputError(str(file), None, name, "should be a text")
            found.append((file.parent, content))
        return found


def _read(file: Path) -> dict[str, Any]:
    """Read a JSON object from a regular file; a pipe might block forever. Raises InputError."""
    if not file.is_file():
        raise InputError(str(file), None, "", "is not a regular file")
    return read_json(file)
