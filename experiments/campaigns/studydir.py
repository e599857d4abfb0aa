"""The directory of a study: its paths and the content of study.json. See `testbed.backends.studies`."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field

from experiments.files.plain_name import check_folder
from experiments.records.json_files import read_json, write_json
from experiments.records.rundir import DatedDirectory
from experiments.records.validated_json import STRICT, Free, Name, Seed, from_json

RECORD = "study.json"


@dataclass(frozen=True, slots=True)
class StudyRecord:
    """The content of study.json. parameters: all of them. commit: of the code, if known."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    system: Name
    study: Name
    parameters: Free
    seeds: Annotated[tuple[Annotated[Seed, Field(ge=0)], ...], Field(min_length=1)]
    commit: str = ""


@dataclass(frozen=True, slots=True)
class StudyDirectory(DatedDirectory):
    """The files of a study."""

    NOUN = "directory of a study"
    RECORD = RECORD

    def seed(self, seed: int) -> Path:
        """Return the folder of one seed's tables."""
        return self.path / "seeds" / str(seed)

    def numbers(self, seed: int) -> Path:
        """Return the file of one seed's single numbers; a seed is done when it exists."""
        return self.seed(seed) / "numbers.json"

    def done(self, seeds: Sequence[int]) -> tuple[int, ...]:
        """Return those of the seeds that are done."""
        return tuple(seed for seed in seeds if self.numbers(seed).exists())

    def write(self, record: StudyRecord) -> None:
        """Write study.json. Raises OSError."""
        write_json(self.path / RECORD, asdict(record))

    def read(self) -> StudyRecord:
        """Read study.json.

        Raises InputError if it is missing or invalid, or if a folder is a symbolic link.
        """

        for folder in (self.figures, self.path / "seeds"):
            check_folder(folder)
        record = from_json(StudyRecord, read_json(self.path / RECORD), self.path / RECORD)
        for seed in record.seeds:
            check_folder(self.seed(seed))
        return record
