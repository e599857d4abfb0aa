"""Roles: counts for every region, or by region."""

from pydantic import TypeAdapter

from experiments.roles import Roles, counts_in

read = TypeAdapter(Roles).validate_python


def test_a_region_may_have_counts_beside_the_default():
    roles = read({"r0": {"proxy": 1, "driver": 4}, "default": {"proxy": 1}})
    assert counts_in(roles, "r0") == {"proxy": 1, "driver": 4}
    assert counts_in(roles, "r1") == {"proxy": 1}


def test_without_a_default_other_regions_have_none():
    assert counts_in(read({"r0": {"proxy": 1}}), "r1") == {}
