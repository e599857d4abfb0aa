"""The user's choice for a command: an experiment, and the options that apply to all its runs."""

from dataclasses import dataclass

from experiments.campaigns.sweep import too_many
from experiments.loader import ExperimentFile
from topologies.errors import InputError


@dataclass(frozen=True, slots=True)
class RunSelection:
    """An experiment as it was read, and the options that apply to all its runs."""

    file: ExperimentFile
    backend: str
    links: str
    seed: int
    repeat: int

    @classmethod
    def from_options(
        cls, file: ExperimentFile, *, backend: str | None, links: str, seed: int | None, repeat: int | None
    ) -> "RunSelection":
        """Apply the options; the file gives the others. Raises InputError if there are too many runs."""
        experiment = file.experiment
        if repeat is not None and (problem := too_many(experiment.axes, repeat)):
            raise InputError("--repeat", None, "", problem)
        return cls(
            file,
            backend or experiment.on,
            links,
            experiment.seed if seed is None else seed,
            repeat or experiment.repeat,
        )

    @property
    def is_sweep(self) -> bool:
        """Whether it makes more than one run."""
        return bool(self.file.experiment.axes) or self.repeat > 1
