"""Parameters are defined only by the systems' own dataclasses."""

from dataclasses import dataclass

import pytest
from pydantic_core import PydanticCustomError

from experiments import declared, parameters
from node.core.declaration import Declared, System


@dataclass(frozen=True, slots=True)
class Parameters:
    """One of each kind."""

    period_us: int = 1_000_000
    limit_bytes: int = 1000
    refill_per_s: float = 5
    link_bits_per_s: int = 1_000_000
    port: int = 7000
    factor: float = 1.0
    eager: bool = False

    def __post_init__(self) -> None:
        if self.limit_bytes > self.link_bits_per_s:
            raise ValueError("the limit is more than the link carries")


@pytest.fixture(autouse=True)
def _one_system(monkeypatch):
    toy = System(Declared("toy", {}), Parameters, {})
    monkeypatch.setattr(declared, "systems", lambda: {"toy": toy})


def test_units_are_in_values_and_not_in_names():
    given = {
        "period": "2s",
        "limit": "4KiB",
        "refill": "0.5/s",
        "link": "1gbit",
        "port": 1,
        "factor": 2,
        "eager": True,
    }
    assert parameters.complete_parameters("toy", given) == {
        "period_us": 2_000_000,
        "limit_bytes": 4096,
        "refill_per_s": 0.5,
        "link_bits_per_s": 1_000_000_000,
        "port": 1,
        "factor": 2.0,
        "eager": True,
    }


@pytest.mark.parametrize(
    ("given", "path", "said"),
    [
        ({"period": 2}, ("period",), "2 has no unit"),
        ({"period_us": 2}, ("period_us",), "no such parameter: did you mean period?"),
        ({"port": True}, ("port",), "should be a valid integer"),
        ({"port": 70000}, ("port",), "should be a port, 1 to 65535, not 70000"),
        ({"eager": 1}, ("eager",), "should be a valid boolean"),
        ({"limit": "1GB"}, (), "the limit is more than the link carries"),
    ],
)
def test_errors_name_the_parameter(given, path, said):
    with pytest.raises(PydanticCustomError) as error:
        parameters.complete_parameters("toy", given)
    assert error.value.context["path"] == path
    assert said in error.value.context["message"]


def test_the_schema_has_defaults_as_in_a_file():
    properties = parameters.parameters_schema("toy")["properties"]
    assert {name: schema["default"] for name, schema in properties.items()} == {
        "period": "1s",
        "limit": "1kB",
        "refill": "5/s",
        "link": "1mbit",
        "port": 7000,
        "factor": 1.0,
        "eager": False,
    }
