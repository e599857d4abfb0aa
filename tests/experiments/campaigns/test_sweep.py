"""Sweeps: every combination, in the order of the file."""

import pytest
from pydantic_core import PydanticCustomError

from experiments.campaigns.sweep import points, refuse_unusable, values_text
from experiments.campaigns.sweepdir import runs


def test_every_combination_is_a_point_and_the_last_path_varies_fastest():
    assert points({"roles.driver": [1, 2], "workload.rate": ["1/s", "2/s"]}) == [
        {"roles.driver": 1, "workload.rate": "1/s"},
        {"roles.driver": 1, "workload.rate": "2/s"},
        {"roles.driver": 2, "workload.rate": "1/s"},
        {"roles.driver": 2, "workload.rate": "2/s"},
    ]


def test_combinations_are_bounded():
    with pytest.raises(PydanticCustomError, match="more than 10000 combinations"):
        refuse_unusable({f"parameters.p{n}": list(range(100)) for n in range(3)})


def test_first_every_combination_runs_once_and_then_again_with_the_next_seed():
    made = runs({"roles.driver": [1, 2]}, repeat=2, seed=7)
    assert [(run.name, run.repetition, run.seed) for run in made] == [
        ("1-driver-1-r0", 0, 7),
        ("2-driver-2-r0", 0, 7),
        ("1-driver-1-r1", 1, 8),
        ("2-driver-2-r1", 1, 8),
    ]


def test_names_sort_like_the_runs_and_are_fit_for_paths():
    made = runs({"workload.rate": [f"{n}/s" for n in range(1, 13)], "captures": ["none"]}, repeat=11, seed=1)
    assert made[0].name == "01-rate-1-s-captures-none-r00"
    assert len({run.name for run in made}) == len(made) == 132


def test_values_are_shown_as_after_set():
    values = {"roles": {"proxy": 1}, "workload.closed_loop": True, "captures.where": ["hosts"]}
    assert values_text(values) == "roles={proxy: 1} workload.closed_loop=true captures.where=[hosts]"
