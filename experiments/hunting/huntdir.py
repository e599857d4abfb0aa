"""The folder of a hunt: what it hunts, how far it is, its corpus and its findings. All files are written
whole, so that it goes on wherever it was interrupted.

    hunt.json             the experiment, and how the hunt is made
    progress.json         how many cases were run, and what was seen
    corpus/<number>.json  a case each that showed something new
    findings/<nn>-<name>/ experiment.yaml, experiment-when.yaml, finding.json, finding.txt, diagram.txt
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from experiments.hunting.case import (
    Case,
    Disturbance,
    case_from_json,
    case_to_json,
    disturbances_from_json,
)
from experiments.json_files import read_json, write_json
from topologies.errors import InputError

CORPUS_MAX = 20_000
FINDINGS_MAX = 200


@dataclass(frozen=True, slots=True)
class Interesting:
    """A case that showed something new: what, and when in microseconds since time 0. cost: of its run, in
    actions of the simulation. starving: what would have kept some of its deliveries from coming.
    """

    case: Case
    new: Mapping[str, int]
    cost: int = 0
    starving: tuple[tuple[Disturbance, ...], ...] = ()


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
    def corpus(self) -> Path:
        """Cases that showed something new."""
        return self.path / "corpus"

    @property
    def findings(self) -> Path:
        """What was found."""
        return self.path / "findings"

    def make(self) -> None:
        """Make the folder, as far as it is not there. Raises OSError."""
        for folder in (self.path, self.corpus, self.findings):
            folder.mkdir(parents=True, exist_ok=True)

    def keep(self, number: int, interesting: Interesting) -> None:
        """Keep a case of the corpus. Raises OSError."""
        content = {
            "case": case_to_json(interesting.case),
            "new": dict(interesting.new),
            "cost": interesting.cost,
            "starving": [[asdict(each) for each in some] for some in interesting.starving],
        }
        write_json(self.corpus / f"{number:06d}.json", content)

    def kept(self) -> Iterator[Interesting]:
        """All of the corpus, in order. Raises InputError for a file that is none of it."""
        for file in sorted(self.corpus.glob("[0-9]*.json"))[:CORPUS_MAX]:
            content = read_json(file)
            new = content.get("new")
            if not isinstance(new, dict) or not all(type(value) is int for value in new.values()):
                raise InputError(str(file), None, "new", "should say what was new, and when")
            cost = content.get("cost")
            if type(cost) is not int or cost < 0:
                raise InputError(str(file), None, "cost", "should be a whole number")
            starving = tuple(disturbances_from_json(some, file) for some in content.get("starving", ()))
            yield Interesting(case_from_json(content.get("case"), file), new, cost, starving)

    def progress(self) -> dict[str, Any]:
        """How far it is; nothing yet if it has not begun. Raises InputError."""
        return read_json(self.progress_json) if self.progress_json.is_file() else {}

    def found(self) -> list[dict[str, Any]]:
        """finding.json of each finding, in order. Raises InputError."""
        return [read_json(file) for file in sorted(self.findings.glob("*/finding.json"))[:FINDINGS_MAX]]
