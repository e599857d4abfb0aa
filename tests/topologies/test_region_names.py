"""Names of regions, as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topologies.document import parse_document, validated
from topologies.errors import InputError
from topologies.model import Topology
from topologies.region_names import LENGTH_MAX, region_name


def topology(regions, *links):
    listed = "".join(f"  {name}: {{}}\n" for name in regions)
    joined = "".join(f"  - {{between: [{a}, {b}], delay: 1ms}}\n" for a, b in links)
    text = f"name: t\nregions:\n{listed}" + (f"links:\n{joined}" if links else "")
    return validated(Topology, parse_document("t.yaml", text))


@pytest.mark.parametrize("name", ["R1", "New-York", "frankfurt", "AS7018", "no", "A", "a" * LENGTH_MAX])
def test_a_region_keeps_its_name(name):
    assert topology(["x", name], ("x", name)).links[0].name == f"x-{name}"


@pytest.mark.parametrize(
    ("regions", "said"),
    [
        (["New York"], "should be a letter, then letters and digits, with single hyphens between them"),
        (["a--b"], "should be a letter"),
        (["a" * (LENGTH_MAX + 1)], "should have at most 30 characters"),
        (["R1", "r1"], "regions.r1: differs from R1 only in case"),
        (["LAN"], "is a reserved name"),
        (["Lan-a"], "is a reserved name"),
    ],
)
def test_other_names_are_refused(regions, said):
    with pytest.raises(InputError) as refused:
        topology(regions)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("links", "said"),
    [
        ([("a", "b-C"), ("a-B", "c")], "a-B-c is also the name of links.0: rename a region"),
        ([("a", "B-C")], "there is no region B-C: did you mean b-C?"),
    ],
)
def test_links_of_regions_with_hyphens_have_names_of_their_own(links, said):
    with pytest.raises(InputError) as refused:
        topology(["a", "b-C", "a-B", "c"], *links)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("New York", "New-York"),
        ("Washington, DC", "Washington-DC"),
        ("São Paulo", "Sao-Paulo"),
        ("Mosjøen", "Mosjoen"),
        ("Łódź", "Lodz"),
        ("at1.at", "at1-at"),
        ("7018", "r7018"),
        (" - ", ""),
        ("東京", ""),
        ("La Ventana (Josefa Ortiz de Domínguez)", "La-Ventana-Josefa-Ortiz-de-Dom"),
    ],
)
def test_other_names_have_a_nearest_valid_one(written, name):
    assert region_name(written) == name


@given(st.text(max_size=60))
def test_the_nearest_name_is_valid_and_stays(written):
    name = region_name(written)
    assert region_name(name) == name
    if (
        name
        and name.lower() not in {"lan", "default", "true", "false", "null"}
        and name[:4].lower() != "lan-"
    ):
        topology([name])
