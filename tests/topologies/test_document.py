"""Reading YAML: line numbers, bounds, and one clear error for every invalid file."""

from functools import partial

import pytest
import yaml

from tests.refusals import refusal
from topologies.document import FILE_BYTES_MAX, parse_document, read_document
from topologies.errors import InputError
from topologies.yaml_nodes import compose


def error_of(text: str) -> str:
    return refusal(parse_document, "a.yaml", text)


def test_every_value_has_its_line():
    document = parse_document(
        "a.yaml", "name: x\nlinks:\n  - {delay: 1ms}\n  - delay: 2ms\n    rate: 1gbit\n"
    )
    assert document.data == {"name": "x", "links": [{"delay": "1ms"}, {"delay": "2ms", "rate": "1gbit"}]}
    assert document.line_of(("name",)) == 1
    assert document.line_of(("links", 0, "delay")) == 3
    assert document.line_of(("links", 1, "rate")) == 5


def test_a_syntax_error_names_its_line():
    assert error_of("name: x\nlinks: [1, 2\n").startswith("a.yaml:3: not valid YAML: while parsing")
    assert error_of("a: b: c").startswith("a.yaml:1: not valid YAML")


def test_a_duplicate_key_names_both_lines():
    assert error_of("name: x\nb: 1\nname: y\n") == "a.yaml:3: name: given twice, first in line 1"
    assert error_of("regions:\n  r0: {}\n  r0: {}\n") == "a.yaml:3: regions.r0: given twice, first in line 2"


def test_an_empty_file_and_a_second_document_are_refused():
    assert error_of("# nothing\n") == "a.yaml: the file is empty"
    assert "not valid YAML" in error_of("a: 1\n---\nb: 2\n")


def test_tags_and_keys_other_than_text_are_refused():
    assert "has no meaning here" in error_of("a: !!python/object:os.system x")
    assert "should be plain text" in error_of("? [a, b]\n: 1\n")
    assert "cannot be read as a value" in error_of("a: " + "9" * 5000)


def test_aliases_cannot_multiply_without_end():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    assert "too many values" in error_of("\n".join(lines))


@pytest.mark.slow
def test_depth_is_bounded():
    assert "nested too deeply" in error_of("&a [*a]")
    assert "nested too deeply" in error_of("[" * 50 + "]" * 50)
    assert "nested too deeply" in error_of("[" * 100_000)


def test_size_is_bounded(tmp_path):
    path = tmp_path / "large.yaml"
    path.write_text("#" * (FILE_BYTES_MAX + 1))
    with pytest.raises(InputError, match="is larger than 256 KiB"):
        read_document(path)


def test_the_error_for_an_unreadable_file_has_the_reason(tmp_path):
    with pytest.raises(InputError, match=r"nowhere\.yaml: cannot be read: No such file"):
        read_document(tmp_path / "nowhere.yaml")
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        read_document(tmp_path)
    (tmp_path / "latin.yaml").write_bytes(b"name: x\ndescription: caf\xe9\n")
    with pytest.raises(InputError, match=r"latin\.yaml:2: is not UTF-8 text"):
        read_document(tmp_path / "latin.yaml")


def test_errors_name_a_file_relative_to_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.yaml").write_text("[")
    with pytest.raises(InputError) as error:
        read_document(tmp_path / "a.yaml")
    assert error.value.file == "a.yaml"


def nodes_of(read, text):
    """Kind, value, tag and line of every node, or the error, of a text as it is read."""
    try:
        root = read(text)
    except yaml.YAMLError as error:
        return str(error)
    return root and yaml.serialize(root), list(lines_of(root))


def lines_of(node):
    if node is not None:
        yield node.tag, node.start_mark.line
        for child in node.value if isinstance(node.value, list) else ():
            for part in child if isinstance(child, tuple) else (child,):
                yield from lines_of(part)


def test_only_true_and_false_are_booleans():
    text = "a: [no, on, Yes, off]\nb: [true, False]\n"
    assert parse_document("a.yaml", text).data == {"a": ["no", "on", "Yes", "off"], "b": [True, False]}


@pytest.mark.parametrize(
    "text",
    [
        "", "# only\n",
        "a: 1_000\nb: 0x1f\nc: 1e3\nd: 2020-01-01\ne: ~\nf: yes\n",
        "a: |\n  x\n\n  y\nb: >-\n  z\n",
        "a: &x {b: [1, 'it''s', \"\\u00e9\"]}\nc: *x\n",
        "\ufeffa: \U0001f600\n", "a: [1", "a: b: c", "\tx: 1", "x: \x01",
        "--- a\n--- b", "a: *nope",
    ],
)  # fmt: skip
def test_yaml_is_read_equally_with_and_without_libyaml(text):
    assert nodes_of(compose, text) == nodes_of(partial(yaml.compose, Loader=yaml.SafeLoader), text)
