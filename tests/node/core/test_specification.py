"""A node's specification is parsed from JSON; errors name the field."""

import json
from dataclasses import asdict

import pytest

from node.core.specification import NodeSpec
from tests.node.cluster import specs


def test_a_specification_survives_json():
    for spec in specs(regions=2):
        assert NodeSpec.from_json(json.loads(json.dumps(asdict(spec)))) == spec


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda given: given.update(colour="red"), "colour"),
        (lambda given: given.pop("seed"), "seed"),
        (lambda given: given.pop("members"), "members"),
        (lambda given: given["members"].append({"name": "x", "shape": "round"}), "shape"),
    ],
)
def test_errors_name_the_field(change, problem):
    given = json.loads(json.dumps(asdict(specs(regions=1)[0])))
    change(given)
    with pytest.raises(ValueError, match=problem):
        NodeSpec.from_json(given)
