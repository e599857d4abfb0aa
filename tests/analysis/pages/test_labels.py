"""Labels of pages are words for readers, not names of classes."""

import ast
import re
from itertools import chain
from pathlib import Path

import pytest

import analysis

ROOT = Path(analysis.__file__).parent
CLASS_NAME = re.compile(r"([A-Z][a-z]+){2,}")


@pytest.mark.slow
def test_no_label_of_a_page_is_the_name_of_a_class() -> None:
    trees = {path: ast.parse(path.read_text()) for path in ROOT.rglob("*.py")}
    classes = {
        node.name for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
    }
    texts = [
        (path.name, node.value)
        for path, tree in trees.items()
        if "pages" in path.parts or "systems" in path.parts
        for parent in ast.walk(tree)
        for node in chain(
            getattr(parent, "args", ()) or () if isinstance(parent, ast.Call) else (),
            parent.elts if isinstance(parent, ast.Tuple) else (),
        )
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    assert len(texts) > 500
    assert [each for each in texts if CLASS_NAME.fullmatch(each[1]) and each[1] in classes] == []
