"""Generated topologies: the graph of each kind, and the errors for impossible parameters."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.refusals import refusal
from tests.topologies.shipped import NAMES
from topologies.generated.kinds import KINDS, Regular, is_generated
from topologies.loader import load_topology, topology_document
from topologies.model import Topology
from topologies.routes import connected

RANGE = "{from: 1ms, to: 150ms}"


@pytest.fixture
def load(tmp_path: Path, monkeypatch):
    """Return a function that loads a topology from the fields after its name."""
    monkeypatch.chdir(tmp_path)

    def load_fields(*fields: str) -> Topology:
        Path("made.yaml").write_text("\n".join(("name: made", *fields, "")))
        return load_topology("made.yaml")

    return load_fields


def joined(topology: Topology) -> set[str]:
    return {link.name for link in topology.links}


@pytest.mark.parametrize(
    ("fields", "links"),
    [
        (["kind: ring", "regions: 4"], {"r0-r1", "r1-r2", "r2-r3", "r3-r0"}),
        (["kind: line", "regions: 4"], {"r0-r1", "r1-r2", "r2-r3"}),
        (["kind: star", "regions: 4"], {"r0-r1", "r0-r2", "r0-r3"}),
        (["kind: mesh", "regions: 3"], {"r0-r1", "r0-r2", "r1-r2"}),
        (
            ["kind: grid", "rows: 2", "columns: 3"],
            {"r0-r1", "r1-r2", "r3-r4", "r4-r5", "r0-r3", "r1-r4", "r2-r5"},
        ),
        (["kind: tree", "regions: 6"], {"r0-r1", "r0-r2", "r1-r3", "r1-r4", "r2-r5"}),
        (
            ["kind: cliques", "size: 3"],
            {"r0-r1", "r0-r2", "r1-r2", "r3-r4", "r3-r5", "r4-r5", "r0-r3", "r1-r4"},
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_each_kind_has_the_expected_links(load, fields, links):
    assert joined(load(*fields, f"delays: {RANGE}")) == links


@given(st.integers(4, 14), st.integers(2, 3), st.integers(0, 10_000))
def test_random_regular_graphs_are_connected_and_regular_for_every_seed(regions, degree, seed):
    if regions * degree % 2:
        regions += 1
    model = Regular.model_validate(
        {"name": "x", "kind": "regular", "regions": regions, "degree": degree, "seed": seed,
         "delays": {"from": "1ms", "to": "2ms"}}
    )  # fmt: skip
    edges = list(model.edges())
    assert len(set(edges)) == len(edges) == regions * degree // 2
    assert set(Counter(end for edge in edges for end in edge).values()) == {degree}
    assert connected(range(regions), edges)


def test_cross_links_join_regions_that_the_tree_does_not(load):
    fields = ["kind: tree", "regions: 7", f"delays: {RANGE}"]
    tree, crossed = load(*fields), load(*fields, "cross_links: 3")
    assert joined(tree) < joined(crossed)
    assert len(crossed.links) == len(tree.links) + 3
    assert joined(load(*fields, "cross_links: 3", "seed: 9")) != joined(crossed)


def test_delays_are_drawn_from_the_range_by_the_seed(load):
    fields = ["kind: mesh", "regions: 10", f"delays: {RANGE}"]
    one = load(*fields)
    delays_us = [link.forward_parameters.delay_us for link in one.links]
    assert min(delays_us) >= 1_000
    assert max(delays_us) <= 150_000
    assert len(set(delays_us)) > 40
    assert all(link.forward_parameters == link.backward_parameters for link in one.links)
    assert load(*fields) == one
    assert load(*fields, "seed: 2") != one


def test_directions_draw_their_own_delays_if_asked(load):
    topology = load("kind: ring", "regions: 8", "delays: {from: 1ms, to: 150ms, asymmetric: true}")
    assert all(
        link.forward_parameters.delay_us != link.backward_parameters.delay_us for link in topology.links
    )


def test_delays_may_be_listed_link_by_link(load):
    topology = load(
        "kind: ring", "regions: 3", "delays: [1ms, 2ms, 300us]", "link: {rate: 1mbit, jitter: 100us}"
    )
    assert [link.forward_parameters.delay_us for link in topology.links] == [1000, 2000, 300]
    assert {link.backward_parameters.rate_bits_per_s for link in topology.links} == {1_000_000}


def test_a_generated_topology_is_plain_and_reads_back():
    for name in NAMES:
        topology = load_topology(name)
        assert type(topology) is Topology
        content = topology.model_dump(mode="json", by_alias=True, exclude_none=True)
        assert "kind" not in content
        if is_generated(topology_document(name).data):
            assert Topology.model_validate(content) == topology


def test_every_kind_has_a_shipped_topology_and_all_shipped_ones_are_connected():
    shipped = {name.split("-")[0] for name in NAMES}
    for kind in KINDS:
        assert {"regular": "random", "transit-stub": "transit"}.get(kind, kind) in shipped
    for name in NAMES:
        topology = load_topology(name)
        assert connected(topology.regions, [link.between for link in topology.links]), name


@pytest.mark.parametrize(
    ("fields", "line", "said"),
    [
        (["kind: rign", "regions: 4"], 2, "kind: there is no kind 'rign': did you mean ring?"),
        (["kind: grid", "rows: 20", "columns: 20"], 4, "columns: makes 400 regions: at most 250"),
        (["kind: regular", "regions: 5"], 1, "degree: regions times degree must be even"),
        (["kind: regular", "regions: 4", "degree: 5"], 4, "degree: is too much for 4 regions"),
        (["kind: tree", "regions: 3", "cross_links: 2"], 4, "cross_links: only 1 pairs of regions"),
        (["kind: ring", "regions: 3", "delays: [1ms, 2ms]"], 4, "delays: there are 3 links, not 2"),
        (["kind: ring", "regions: 3", "delays: {from: 2ms, to: 1ms}"], 4, "delays.from: is more"),
        (["kind: ring", "regions: 3", "link: {delay: 1ms}"], 4, "link.delay: use `delays`"),
        (["kind: ring", "regions: 3", "link: {jitter: 3ms}"], 1, "makes an invalid link"),
        (["kind: cliques", "size: 3", "joined_by: 4"], 4, "joined_by: is more than the 3 regions"),
        (["kind: ring", "regions: 3", "delays: 1ms"], 4, "delays: should be a range, such as"),
    ],
)  # fmt: skip
def test_errors_name_file_line_and_field(load, fields, line, said):
    if not any(field.startswith("delays") for field in fields):
        fields = [*fields, "delays: {from: 1ms, to: 2ms}"]
    assert refusal(load, *fields).startswith(f"made.yaml:{line}: {said}")
