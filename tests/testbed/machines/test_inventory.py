"""Inventories as users write them, valid and invalid."""

from pathlib import Path

import pytest

from testbed.machines.inventory import inventory_schema, load_inventory
from topologies.errors import InputError

DOCUMENT = Path(__file__).parents[3] / "docs/hosts.md"
TWO = """inventory: lab
user: cutset
key: ~/.ssh/id_lab
takes: 4
machines:
  - {name: h0, control: h0.example.org, experiment: 10.10.1.10, serves: [r0]}
  - {name: h1, control: 192.168.56.11, port: 2222, user: root, experiment: 10.10.1.11, takes: 2}
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "lab.yaml"
    path.write_text(text)
    return path


def test_omitted_fields_of_a_machine_have_the_inventorys_values(tmp_path: Path) -> None:
    first, second = load_inventory(written(tmp_path, TWO)).machines
    assert (first.user, first.port, first.takes, first.serves) == ("cutset", None, 4, ("r0",))
    assert (second.user, second.port, second.takes, second.serves) == ("root", 2222, 2, ())
    assert first.key == Path.home() / ".ssh/id_lab"
    assert first.runs == "/var/tmp/cutset/runs"


def test_a_machine_may_have_an_address_for_each_link(tmp_path: Path) -> None:
    text = TWO.replace("experiment: 10.10.1.10", "links: {r0-r1: 10.1.1.2}")
    first, second = load_inventory(written(tmp_path, text)).machines
    assert first.address("r0-r1") == "10.1.1.2"
    assert first.address("r0-r2") is None
    assert second.address("r0-r2") == "10.10.1.11"


@pytest.mark.parametrize(
    ("old", "new", "line", "problem"),
    [
        ("10.10.1.11", "10.10.1", 7, "machines.1.experiment: '10.10.1' is not an IPv4 address, such as"),
        ("10.10.1.11", "10.10.1.10", 7, "machines.1.experiment: another machine has the address 10.10.1.10"),
        ("name: h1", "name: h0", 7, "machines.1.name: another machine has the name h0"),
        ("experiment: 10.10.1.11, ", "", 7, "machines.1.experiment: needs an address in the experiment"),
        ("port: 2222", "password: hunter2", 7, "machines.1.password: unknown field"),
        ("h0.example.org", "h0;reboot", 6, "machines.0.control: 'h0;reboot' is not a host name or address"),
        ("takes: 4", "lease: 1s", 4, "lease: should be greater than or equal to 5s, not '1s'"),
        ("192.168.56.11, port: 2222", "h0.example.org", 7, "machines.1.control: h0 has the same address"),
        ("takes: 4", "folder: tmp/../etc", 4, "folder: 'tmp/../etc' is not a plain absolute path"),
        ("serves: [r0]", "host_key: SHA256:abc", 6, "machines.0.host_key: 'SHA256:abc' is not a fingerprint"),
    ],
)  # fmt: skip
def test_mistakes_are_reported_with_file_line_and_field(
    tmp_path: Path, old: str, new: str, line: int, problem: str
) -> None:
    path = written(tmp_path, TWO.replace(old, new))
    with pytest.raises(InputError) as raised:
        load_inventory(path)
    assert str(raised.value).startswith(f"{path}:{line}: {problem}")


# Its JSON schema.


def test_the_schema_describes_every_field_and_refuses_unknown_ones() -> None:
    schema = inventory_schema()
    for part in (schema, schema["$defs"]["_Machine"], schema["$defs"]["Shipping"]):
        assert part["additionalProperties"] is False
        assert all(field.get("description") for field in part["properties"].values())


def test_the_documentation_has_every_field_with_its_default() -> None:
    schema = inventory_schema()
    rows = [line for line in DOCUMENT.read_text().splitlines() if line.startswith("| ")]
    for part in (schema, schema["$defs"]["_Machine"], schema["$defs"]["Shipping"]):
        for name, field in part["properties"].items():
            found = [row for row in rows if row.startswith(f"| `{name}` |")]
            assert found, name
            assert any(str(field.get("default", "")) in row.split("|")[-2] for row in found), name
