"""`cutset schema` prints JSON schemas."""

import json

import pytest

from testbed.cli import main


@pytest.mark.parametrize(
    ("kind", "field"),
    [("experiment", "workload"), ("topology", "regions"), ("suite", "entries"), ("inventory", "machines")],
)
def test_a_schema_is_json(capsys, kind, field):
    assert main.run(["schema", kind]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert schema["$schema"].endswith("2020-12/schema")
    whole = schema["$defs"]["Topology"] if kind == "topology" else schema
    assert field in whole["required"]


def test_tables_are_a_page(capsys):
    assert main.run(["schema", "tables"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("# Tables\n")
    assert "| `p99_ms` | double | 99th percentile, ms |" in said
