"""Case generators of the hunted experiments, made once for all tests."""

from functools import cache

from experiments.hunting.drawing import Drawing
from experiments.hunting.knobs import knobs_of
from experiments.hunting.written import base_of
from experiments.loader import load_experiment


@cache
def drawing_of(name: str) -> Drawing:
    """Return the case generator of an experiment with a nemesis."""
    experiment = load_experiment(name)
    base = base_of(experiment)
    return Drawing(base, experiment.nemesis, knobs_of(base, experiment.nemesis))
