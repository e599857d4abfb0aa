"""Case generators of the hunted experiments, made once for all tests."""

from functools import cache

from experiments.hunting.case import HuntCase
from experiments.hunting.case_experiment import hunt_base
from experiments.hunting.drawing import CaseGenerator
from experiments.hunting.settings import drawn_settings
from experiments.loader import load_experiment


@cache
def drawing_of(name: str, *settings: str) -> CaseGenerator:
    """Return the case generator of an experiment with a nemesis."""
    experiment = load_experiment(name, list(settings))
    base = hunt_base(experiment)
    return CaseGenerator(base, experiment.nemesis, drawn_settings(base, experiment.nemesis))


@cache
def cases_of(name: str, count: int = 200) -> tuple[HuntCase, ...]:
    """Return the cases of the first seeds, drawn once for all tests."""
    return tuple(map(drawing_of(name).case, range(count)))
