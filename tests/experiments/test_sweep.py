"""Sweeps: every combination, in the order of the file."""

import pytest
from pydantic_core import PydanticCustomError

from experiments.sweep import points, refuse_unusable


def test_every_combination_is_a_point_and_the_last_path_varies_fastest():
    assert points({"roles.driver": [1, 2], "workload.rate": ["1/s", "2/s"]}) == [
        {"roles.driver": 1, "workload.rate": "1/s"},
        {"roles.driver": 1, "workload.rate": "2/s"},
        {"roles.driver": 2, "workload.rate": "1/s"},
        {"roles.driver": 2, "workload.rate": "2/s"},
    ]


def test_no_sweep_is_one_point():
    assert points({}) == [{}]


def test_combinations_are_bounded():
    with pytest.raises(PydanticCustomError, match="more than 10000 combinations"):
        refuse_unusable({f"parameters.p{n}": list(range(100)) for n in range(3)})
