"""Nothing but a system itself, and how it is read, knows the names of its roles: the code asks for traits."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from node.systems import codecs, systems

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("analysis", "experiments", "node", "systems", "testbed", "topologies")
SHIPPED = {f"systems/{file.parent.name}/" for file in (ROOT / "systems").glob("*/*.yaml")}
OWN = ("node/protocols/", "analysis/systems/", "node/tcp/client.py", "node/systems.py", *SHIPPED)
"""Files of a system: its protocol, its reading, its programs, and the public API that applications call."""
NOT_ROLES = {"client", "driver", "configuration", "publisher", "member", "subscriber", "peer"}
"""Names that are also columns of tables: they count only in comparisons with a role."""


@cache
def files() -> dict[str, ast.Module]:
    """Return the syntax of all files but those of a system, by their paths."""
    paths = [str(path.relative_to(ROOT)) for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]
    return {path: ast.parse((ROOT / path).read_text()) for path in paths if not path.startswith(OWN)}


def named(tree: ast.AST, roles: set[str]) -> Iterator[int]:
    """Lines on which a role is named."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value in roles - NOT_ROLES:
            yield node.lineno
        elif isinstance(node, ast.Compare) and "role" in ast.unparse(node.left).lower():
            yield from (each.lineno for each in constants(node) if each.value in roles)
        elif isinstance(node, ast.keyword) and "role" in (node.arg or ""):
            yield from (each.lineno for each in constants(node.value) if each.value in roles)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith((".having", ".has", "of_region")):
            yield from (each.lineno for each in constants(node) if each.value in roles)


def constants(node: ast.AST) -> list[ast.Constant]:
    return [each for each in ast.walk(node) if isinstance(each, ast.Constant)]


@pytest.mark.parametrize(
    "text",
    ["x = 'proxy'", "a.role == 'client'", "a['role'] in ('driver', 'client')", "rows(t, role='client')"],
)
def test_a_named_role_is_found(text):
    assert list(named(ast.parse(text), {"proxy", "client", "driver"}))


def test_no_message_is_named_outside_of_its_system():
    names = {name for codec in codecs().values() for name in codec.by_name}
    assert not [
        f"{path}:{each.lineno} {each.value}"
        for path, tree in files().items()
        for each in constants(tree)
        if each.value in names
    ]


def test_no_role_is_named_outside_of_its_system():
    roles = {role for system in systems().values() for role in system.declared.roles}
    assert not [f"{path}:{line}" for path, tree in files().items() for line in named(tree, roles)]
