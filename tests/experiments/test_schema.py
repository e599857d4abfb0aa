"""The JSON schema of experiment files, as editors need it."""

import pytest

from experiments.faults.kinds import KINDS
from experiments.schema import experiment_schema


@pytest.fixture(scope="module")
def schema():
    return experiment_schema()


@pytest.mark.slow
def test_every_field_is_described(schema):
    for part in (schema, *schema["$defs"].values()):
        for name, field in part["properties"].items():
            assert field.get("description"), name


def test_the_schema_has_every_kind_of_fault_with_its_action_required(schema):
    parts = schema["$defs"]
    required = [
        parts[name]["required"] for name in parts if "at" in parts[name]["properties"] and name != "Traffic"
    ]
    assert len(required) == len(KINDS)
    for kind in KINDS:
        assert sum(kind in names for names in required) == 1


def test_the_schema_has_the_parameters_of_each_system(schema):
    rules = schema["allOf"]
    found = {
        rule["if"]["properties"]["system"]["const"]: rule["then"]["properties"]["parameters"]["properties"]
        for rule in rules
    }
    assert found["sprinkler"]["advertisement_period"]["default"] == "1s"
    assert found["scribe"]["tree_timeout"]["default"] == "1500ms"


def test_defaults_in_the_schema_have_units(schema):
    properties = schema["properties"]
    assert {"const": "none"} in properties["captures"]["anyOf"]
    assert properties["drain"]["default"] == "10s"
    assert "default" not in properties["paper"]
