"""The JSON schema of topology files accepts and refuses the same as the loader."""

import re

import pytest

from topologies.generated.kinds import KINDS
from topologies.json_schema import topology_schema
from topologies.loader import topology_document


@pytest.fixture(scope="module")
def schema():
    return topology_schema()


def test_fields_are_described_and_unknown_ones_refused_at_every_level(schema):
    for part in schema["$defs"].values():
        assert part["additionalProperties"] is False
        for name, field in part["properties"].items():
            assert field.get("description"), name


def test_quantities_and_their_defaults_are_text_with_a_unit(schema):
    lan, link = (schema["$defs"][name]["properties"] for name in ("Lan", "Link"))
    assert lan["delay"]["type"] == "string"
    assert (lan["delay"]["default"], lan["rate"]["default"]) == ("1ms", "1gbit")
    assert "minimum" not in lan["rate"]
    for given in topology_document("four-regions").data["links"]:
        assert re.search(link["delay"]["pattern"], given["delay"])
        assert re.search(link["rate"]["pattern"], given["rate"])
    assert not re.search(link["delay"]["pattern"], "15")
    assert not re.search(link["delay"]["pattern"], "15 seconds-ish")


def test_a_file_has_regions_and_links_or_one_kind(schema):
    names = [choice["$ref"].removeprefix("#/$defs/") for choice in schema["oneOf"]]
    assert names[0] == "Topology"
    kinds = [schema["$defs"][name]["properties"]["kind"]["const"] for name in names[1:]]
    assert kinds == list(KINDS)
    assert all("kind" in schema["$defs"][name]["required"] for name in names[1:])
    assert "kind" not in schema["$defs"]["Topology"]["properties"]
