"""The JSON schema of topology files says what the loader says, as people write it."""

import re

import pytest

from topologies.generated.kinds import KINDS
from topologies.json_schema import topology_schema
from topologies.loader import topology_document


@pytest.mark.slow
def test_unknown_fields_are_refused_at_every_level():
    schema = topology_schema()
    assert all(part["additionalProperties"] is False for part in schema["$defs"].values())


def test_every_field_is_described():
    schema = topology_schema()
    for part in schema["$defs"].values():
        for name, field in part["properties"].items():
            assert field.get("description"), name


def test_quantities_are_text_with_a_unit_and_so_are_their_defaults():
    lan = topology_schema()["$defs"]["Lan"]["properties"]
    assert lan["delay"]["type"] == "string"
    assert lan["delay"]["default"] == "1ms"
    assert lan["rate"]["default"] == "1gbit"
    assert "minimum" not in lan["rate"]


def test_the_patterns_accept_the_files_that_are_here():
    links = topology_schema()["$defs"]["Link"]["properties"]
    for link in topology_document("four-regions").data["links"]:
        assert re.search(links["delay"]["pattern"], link["delay"])
        assert re.search(links["rate"]["pattern"], link["rate"])
    assert not re.search(links["delay"]["pattern"], "15")
    assert not re.search(links["delay"]["pattern"], "15 seconds-ish")


def test_a_file_is_of_regions_and_links_or_of_one_kind():
    schema = topology_schema()
    names = [choice["$ref"].removeprefix("#/$defs/") for choice in schema["oneOf"]]
    assert names[0] == "Topology"
    kinds = [schema["$defs"][name]["properties"]["kind"]["const"] for name in names[1:]]
    assert kinds == list(KINDS)
    assert all("kind" in schema["$defs"][name]["required"] for name in names[1:])
    assert "kind" not in schema["$defs"]["Topology"]["properties"]
