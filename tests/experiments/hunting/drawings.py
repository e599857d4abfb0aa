"""Case generators of the hunted experiments, made once for all tests."""

from functools import cache

from experiments.hunting.drawing import CaseGenerator
from experiments.hunting.settings import drawn_settings
from experiments.hunting.written import hunt_base
from experiments.loader import load_experiment


@cache
def drawing_of(name: str, *settings: str) -> CaseGenerator:
    """Return the case generator of an experiment with a nemesis."""
    experiment = load_experiment(name, list(settings))
    base = hunt_base(experiment)
    return CaseGenerator(base, experiment.nemesis, drawn_settings(base, experiment.nemesis))
