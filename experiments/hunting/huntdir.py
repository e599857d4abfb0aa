"""The folder of a hunt: its experiment, progress and findings. Files are replaced whole, so that an
interrupted hunt can resume.

    hunt.json             the experiment, and how the hunt is made
    progress.json         how many cases were run, and what was seen
    findings/<nn>-<name>/ experiment.yaml, experiment-when.yaml, finding.json, finding.txt, diagram.txt
    runs/<run>/           of a hunt on real processes: runs that broke, with their packets
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field

from experiments.hunting.case import Case
from experiments.records.json_files import read_json
from experiments.records.validated_json import STRICT, Count, Free, from_json
from topologies.errors import InputError

HUNTS = "hunts"
"""The folder of hunts, in the folder of runs."""
FINDINGS_MAX = 200


@dataclass(frozen=True, slots=True)
class Broken:
    """A case whose run broke something, before it is shrunk: which run it was, and what the oracle said.
    directory: of a run on real processes.
    """

    number: Count
    case: Case
    violations: tuple[Free, ...]
    directory: str | None = None


@dataclass(slots=True)
class Progress:
    """How far a hunt is. elapsed_s: over all of its sittings. invalid: runs on real processes with which the
    machine did not keep up. causes: how often what broke alike was seen;
    shrunk: how often it was shrunk. waiting: what is to be shrunk.
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
    waiting: list[Broken] = field(default_factory=list)

    @property
    def of_use(self) -> int:
        """Runs that say something about the system."""
        return self.runs - self.refused - self.unfinished - self.invalid

    def no_use(self) -> str:
        """Why no run was of use, in a line."""
        why = {
            "refused": self.refused,
            "did not finish": self.unfinished,
            "with which the machine did not keep up": self.invalid,
        }
        said = ", ".join(f"{count} {what}" for what, count in why.items() if count)
        return f"no run was of use, of {self.runs}{f': {said}' if said else ''}"


@dataclass(frozen=True, slots=True)
class HuntDirectory:
    """A hunt's folder, there or not yet there."""

    path: Path

    @property
    def hunt_json(self) -> Path:
        """What is hunted, and how."""
        return self.path / "hunt.json"

    @property
    def progress_json(self) -> Path:
        """How far it is."""
        return self.path / "progress.json"

    @property
    def findings(self) -> Path:
        """What was found."""
        return self.path / "findings"

    @property
    def runs(self) -> Path:
        """Runs on real processes."""
        return self.path / "runs"

    @property
    def others(self) -> list[str]:
        """What is there and of no hunt."""
        ours = {self.hunt_json, self.progress_json, self.findings, self.runs}
        there = self.path.iterdir() if self.path.is_dir() else ()
        return sorted(each.name for each in there if each not in ours and not each.name.startswith("."))

    def make(self) -> None:
        """Make the folder, as far as it is not there. Raises OSError."""
        for folder in (self.path, self.findings):
            folder.mkdir(parents=True, exist_ok=True)

    def progress(self) -> Progress:
        """How far it is; nothing yet if it has not begun. Raises InputError."""
        if not self.progress_json.exists():
            return Progress()
        return from_json(Progress, _read(self.progress_json), self.progress_json)

    def found(self) -> list[tuple[Path, dict[str, Any]]]:
        """The folder of each finding, and its finding.json, in order. Raises InputError."""
        found = []
        for file in sorted(self.findings.glob("*/finding.json"))[:FINDINGS_MAX]:
            content = _read(file)
            for name in ("said", "signature"):
                if not isinstance(content.get(name), str):
                    raise InputError(str(file), None, name, "should be a text")
            found.append((file.parent, content))
        return found


def _read(file: Path) -> dict[str, Any]:
    """A JSON object in a plain file; of a pipe nothing might ever come. Raises InputError."""
    if not file.is_file():
        raise InputError(str(file), None, "", "is no file")
    return read_json(file)
