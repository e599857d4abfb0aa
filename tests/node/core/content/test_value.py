"""Values: what they have of frozen dataclasses, but for the guard at run time."""

from dataclasses import field, fields, replace

import pytest

from node.core.content.value import value


@value
class Point:
    """A pair of numbers, and a list of its own."""

    x: int
    y: int = 0
    others: tuple[int, ...] = field(default_factory=tuple)


def test_values_with_the_same_fields_are_one_key():
    assert {Point(1, 2): "here"}[Point(1, 2)] == "here"
    assert Point(1, 2) != Point(2, 1)


def test_a_value_has_its_fields_and_nothing_else():
    assert [each.name for each in fields(Point)] == ["x", "y", "others"]
    with pytest.raises(AttributeError):
        Point(1).z = 3


def test_another_value_is_made_from_one():
    point = Point(1, 2)
    assert replace(point, y=3) == Point(1, 3)
    assert point == Point(1, 2)


def test_a_value_is_matched_by_its_fields():
    match Point(1, 2):
        case Point(x, 2):
            assert x == 1
        case _:
            pytest.fail("not matched")
