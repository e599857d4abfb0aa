"""Topology files: their meaning, and the errors for invalid ones."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.sweeps import plain
from tests.refusals import refusal
from tests.topologies.shipped import NAMES
from topologies.document import parse_document, validated
from topologies.errors import InputError
from topologies.link_parameters import LinkParameters
from topologies.loader import load_topology
from topologies.model import Topology
from topologies.region_names import LENGTH_MAX, region_name
from topologies.round_trips import carriers, greatest_direct

GOOD = """
name: pair
regions:
  r0: {lan: {delay: 2ms, rate: 100mbit}}
  r1: {}
links:
  - {between: [r0, r1], delay: 20ms, rate: 1gbit}
""".lstrip()


@pytest.fixture
def load(tmp_path: Path, monkeypatch):
    """Return a function that loads a topology from its text."""

    monkeypatch.chdir(tmp_path)

    def load_text(text: str) -> Topology:
        Path("pair.yaml").write_text(text)
        return load_topology("pair.yaml")

    return load_text


def changed(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new)


def test_four_regions_has_the_latencies_of_figure_8():
    topology = load_topology("four-regions")
    delays_ms = {link.name: link.forward_parameters.delay_us / 1000 for link in topology.links}
    assert delays_ms == {"r0-r1": 15, "r2-r3": 15, "r0-r2": 40, "r0-r3": 45, "r1-r2": 35, "r1-r3": 40}
    assert {link.forward_parameters.rate_bits_per_s for link in topology.links} == {10_000_000_000}
    lans = {region.lan.parameters() for region in topology.regions.values()}
    assert lans == {LinkParameters(delay_us=1000, rate_bits_per_s=1_000_000_000)}


def test_forward_and_backward_override_single_values(load):
    text = changed("delay: 20ms, rate: 1gbit", "delay: 20ms, loss: 1%, backward: {delay: 50ms, jitter: 5ms}")
    link = load(text).links[0]
    assert link.forward_parameters == LinkParameters(delay_us=20_000, loss=0.01)
    assert link.backward_parameters == LinkParameters(delay_us=50_000, jitter_us=5_000, loss=0.01)


PARALLEL = """
name: parallel
regions: {r0: {}, r1: {}, r2: {}}
links:
  - {between: [r0, r1], delay: 15ms}
  - {name: backup, between: [r1, r0], delay: 5ms, weight: 1}
  - {name: sea, between: [r1, r2], forward: {delay: 10ms}, backward: {delay: 30ms}}
  - {name: land, between: [r1, r2], delay: 20ms}
"""


def test_routes_use_the_parallel_link_of_least_weight_then_delay_in_each_direction(load):
    topology = load(PARALLEL)
    carried = {hop: link.name for hop, link in carriers(topology).items()}
    assert carried == {
        ("r0", "r1"): "r0-r1",
        ("r1", "r0"): "r0-r1",
        ("r1", "r2"): "sea",
        ("r2", "r1"): "land",
    }
    assert topology.link(["r0", "r1"]) is None, "two links join them"
    assert [topology.reference(link) for link in topology.links[:2]] == ["r0-r1", "backup"]
    assert greatest_direct(topology).us == 2 * 15_000 + 10_000 + 20_000 + 4_000


@pytest.mark.parametrize(
    ("written", "otherwise", "said"),
    [
        ("name: backup, ", "", "links.1.between: r1-r0 is a duplicate: see links.0; a parallel link needs"),
        ("name: land", "name: r1-r0", "links.3.name: r1-r0 is also the name of links.0: give another"),
        ("name: land", "name: R0", "links.3.name: R0 is a region's name, or begins with lan-"),
    ],
)
def test_parallel_links_need_names_of_their_own(load, written, otherwise, said):
    assert said in refusal(load, PARALLEL.replace(written, otherwise))


def test_the_cut_set_is_the_links_between_groups():
    topology = load_topology("four-regions")
    found = topology.cut_set([["r2", "r3"], ["r0", "r1"]])
    assert [(link.name, forward) for link, forward in found] == [
        ("r0-r2", False),
        ("r0-r3", False),
        ("r1-r2", False),
        ("r1-r3", False),
    ]
    assert [link.name for link, _ in topology.cut_set([["r0"], ["r1"]])] == ["r0-r1"]


def test_a_link_needs_no_delay_if_both_directions_have_one(load):
    directions = "forward: {delay: 100ms}, backward: {delay: 30ms}, jitter: 20ms"
    topology = load(changed("delay: 20ms", directions))
    (link,) = topology.links
    assert (link.forward_parameters.delay_us, link.backward_parameters.delay_us) == (100_000, 30_000)
    assert link.backward_parameters.jitter_us == 20_000
    assert (
        Topology.model_validate(topology.model_dump(mode="json", by_alias=True, exclude_none=True))
        == topology
    )


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("name: pair", "name: [pair]", 1, "name: should be a valid string, not ['pair']"),
        ("delay: 20ms", "dealy: 20ms", 6, "links.0.dealy: unknown field: did you mean delay?"),
        ("delay: 20ms, ", "", 6, "links.0.delay: is missing"),
        ("delay: 20ms", "forward: {delay: 20ms}", 6, "links.0.delay: is missing, and backward has none"),
        ("rate: 1gbit", "rate: 1bit", 6, "links.0.rate: should be greater than or equal to 1kbit"),
        ("rate: 1gbit", "jitter: 30ms", 6, "links.0.jitter: is more than the delay"),
        ("rate: 1gbit", "backward: {jitter: 30ms}", 6, "links.0.backward.jitter: is more than"),
        ("rate: 1gbit", "loss: 90%, loss_burst: 4packets", 6, "links.0.loss: is more than bursts of 4"),
        ("[r0, r1]", "[r0, r2]", 6, "links.0.between: there is no region r2: known are r0, r1"),
        ("[r0, r1]", "[r0, r0]", 6, "links.0.between: joins r0 with itself"),
        ("[r0, r1]", "r0-r1", 6, "links.0.between: should be two regions, such as [r0, r1]"),
        ("r1: {}", "r1:", 4, "regions.r1: should be a mapping of fields, not None"),
    ],
)
def test_errors_name_file_line_and_field(load, old, new, line, said):
    assert refusal(load, changed(old, new)).startswith(f"pair.yaml:{line}: {said}")


def test_the_first_of_several_mistakes_in_the_file_is_named(load):
    with pytest.raises(InputError, match=r"pair\.yaml:3: regions\.r0\.lan\.dley"):
        load(GOOD.replace("lan: {delay", "lan: {dley").replace("delay: 20ms", "delay: 20"))


def test_an_error_in_the_only_link_or_region_names_its_field(load):
    with pytest.raises(InputError, match=r"pair\.yaml:6: links\.0\.dely: unknown field"):
        load(GOOD.replace("delay: 20ms", "dely: 20ms"))
    with pytest.raises(InputError, match=r"pair\.yaml:3: regions\.r0\.lna: unknown field"):
        load("name: one\nregions:\n  r0: {lna: {}}\n")
    with pytest.raises(InputError, match=r"pair\.yaml:2: links: should be a list, not 5"):
        load("name: one\nlinks: 5\nregions: {r0: {}}\n")
    with pytest.raises(InputError, match=r"pair\.yaml:2: regions: should have at least 1 item, not 0"):
        load("name: one\nregions: {}\n")
    with pytest.raises(InputError, match=r"pair\.yaml:1: should be a mapping of fields, not \[1\]"):
        load("[1]")


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(InputError, match="nowhere: no topology of this name: known are abilene, cliques"):
        load_topology("nowhere")


@pytest.mark.parametrize("name", NAMES)
def test_every_shipped_topology_is_valid_named_after_its_file_and_reads_back(name):
    topology = load_topology(name)
    assert topology.name == name
    assert topology.description
    kept = plain(topology)
    assert Topology.model_validate(kept) == topology
    assert plain(Topology.model_validate(kept)) == kept


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
    assert said in refusal(topology, regions)


@pytest.mark.parametrize(
    ("links", "said"),
    [
        ([("a", "b-C"), ("a-B", "c")], "a-B-c is also the name of links.0: rename a region"),
        ([("a", "B-C")], "there is no region B-C: did you mean b-C?"),
    ],
)
def test_links_of_regions_with_hyphens_have_names_of_their_own(links, said):
    assert said in refusal(topology, ["a", "b-C", "a-B", "c"], *links)


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
def test_the_nearest_valid_name_is_a_fixed_point(written):
    name = region_name(written)
    assert region_name(name) == name
    if (
        name
        and name.lower() not in {"lan", "default", "true", "false", "null"}
        and name[:4].lower() != "lan-"
    ):
        topology([name])
