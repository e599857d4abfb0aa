"""Each format of networks, from its file to a topology."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.refusals import refusal
from tests.topologies.imported.files import (
    CONTAINERLAB,
    PIXELS,
    SHADOW,
    SNDLIB,
    TOPOHUB,
    WHOLE_NUMBERS,
    ZOO_GML,
    ZOO_GRAPHML,
)
from topologies.errors import InputError
from topologies.imported.conversion import Assumptions, imported
from topologies.imported.imported_text import imported_text
from topologies.imported.sources import read_network
from topologies.loader import load_topology

RATE = 10**10


def topology_of(folder, name, content, **assumed):
    """Return the topology of a file, through its text, and what was left out."""
    file = folder / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    assumptions = Assumptions(rate_bits_per_s=RATE, **assumed)
    found = imported(read_network(str(file)), assumptions)
    written = folder / "written.yaml"
    written.write_text(imported_text(found, assumptions, None))
    return load_topology(str(written)), found.left_out


@pytest.mark.parametrize(
    ("name", "content", "speeds"),
    [
        ("alps.gml", ZOO_GML, True),
        ("alps.graphml", ZOO_GRAPHML, True),
        ("alps.xml", SNDLIB, True),
        ("alps.json", TOPOHUB, False),
    ],
)
def test_a_network_gives_the_same_topology_in_every_format_with_positions(tmp_path, name, content, speeds):
    topology, _ = topology_of(tmp_path, name, content)
    assert topology.name == "alps"
    assert [each.lower() for each in topology.regions] == ["bern", "zurich", "milano"]
    first, second = topology.links[:2]
    assert first.delay_us == pytest.approx(95.2 * 1.5 * 5, rel=0.01)
    assert second.delay_us == pytest.approx(217.9 * 1.5 * 5, rel=0.01)
    assert [first.rate_bits_per_s, second.rate_bits_per_s] == [25 * 10**8 if speeds else RATE, RATE]


def test_unsupported_parts_are_left_out_and_reported(tmp_path):
    _, left_out = topology_of(tmp_path, "alps.gml", ZOO_GML)
    assert left_out == (
        "1 link only planned: Bern - Milano",
        "1 self-loop",
        "1 node without a place: None",
        "1 island: Oslo",
    )


def test_opposite_edges_of_a_directed_graph_are_one_link(tmp_path):
    again = SHADOW.replace(
        "edge [ source 0 target 1", 'edge [ source 0 target 1 latency "7 ms" ]\n  edge [ source 0 target 1'
    )
    topology, _ = topology_of(tmp_path, "net.gml", again)
    first, second = topology.links[:2]
    assert (first.forward_parameters.delay_us, first.backward_parameters.delay_us) == (7_000, 12_000)
    assert (second.forward_parameters.delay_us, second.backward_parameters.delay_us) == (10_000, 10_000)


def test_directed_edges_of_an_undirected_graph_are_the_directions_of_a_link(tmp_path):
    edges = [f'<edge source="{a}" target="{b}" directed="true"/>' for a, b in ("12", "21")]
    content = ZOO_GRAPHML.replace('<edge source="1" target="2"/>', "".join(edges))
    assert len(topology_of(tmp_path, "alps.graphml", content)[0].links) == 2
    parallel = content.replace(edges[1], edges[1].replace("true", "false"))
    assert len(topology_of(tmp_path, "alps.graphml", parallel)[0].links) == 3


def test_parallel_links_get_unique_names(tmp_path):
    labels = "".join(
        f'node [ id {number} label "{name}" ] ' for number, name in enumerate(["a", "b", "a-b-2"])
    )
    edges = "".join(f"edge [ source 0 target {target} ] " for target in (1, 1, 2))
    topology, _ = topology_of(tmp_path, "net.gml", f"graph [ {labels} {edges} ]", delay_us=1_000)
    assert [link.name for link in topology.links] == ["a-b", "a-b-3", "a-a-b-2"]


def test_speeds_are_read_or_reported_as_left_out(tmp_path):
    topology, left_out = topology_of(tmp_path, "alps.graphml", ZOO_GRAPHML.replace(">G<", ">Gbps<"))
    assert (topology.links[0].rate_bits_per_s, left_out) == (25 * 10**8, ())
    _, left_out = topology_of(tmp_path, "alps.graphml", ZOO_GRAPHML.replace(">2.5<", ">10-20<"))
    assert left_out == ("speeds of 1 links, such as 10-20 G",)


def test_with_a_default_delay_nodes_without_a_position_are_kept(tmp_path):
    topology, left_out = topology_of(tmp_path, "alps.gml", ZOO_GML, delay_us=7_000)
    assert topology.links[-1].delay_us == 7_000
    assert len(topology.regions) == 4
    assert not any("place" in each for each in left_out)


def test_directions_of_shadow_have_their_own_delays_and_losses(tmp_path):
    written = SHADOW.replace("100 Mbit", "100000 kilobits").replace("10 ms", "10 milliseconds")
    topology, left_out = topology_of(tmp_path, "net.gml", written)
    (link,) = topology.links
    forward, backward = link.forward_parameters, link.backward_parameters
    assert (forward.delay_us, forward.jitter_us, forward.loss) == (10_000, 500, 0.01)
    assert (backward.delay_us, backward.jitter_us, backward.loss) == (12_000, 0, 0)
    assert [region.lan.rate_bits_per_s for region in topology.regions.values()] == [10**8, 81920 * 1024]
    assert left_out == ("1 self-loop",)


def test_links_of_containerlab_need_a_delay(tmp_path):
    with pytest.raises(InputError, match="neither delays nor places; give the delay of all links"):
        topology_of(tmp_path, "alps.clab.yml", CONTAINERLAB)
    topology, left_out = topology_of(tmp_path, "alps.clab.yml", CONTAINERLAB, delay_us=1_000)
    assert list(topology.regions) == ["bern", "zuerich", "milano"]
    assert [link.between for link in topology.links] == [("bern", "zuerich"), ("zuerich", "milano")]
    assert left_out == ("2 links that leave the lab",)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("drawn.json", PIXELS),
        ("drawn.json", WHOLE_NUMBERS),
        ("drawn.xml", SNDLIB.replace("geographical", "pixel")),
    ],
)
def test_pixels_give_no_distances(tmp_path, name, content):
    with pytest.raises(InputError, match="its positions are the pixels of a drawing"):
        topology_of(tmp_path, name, content)
    topology, _ = topology_of(tmp_path, name, content, delay_us=5_000)
    assert {link.delay_us for link in topology.links} == {5_000}


def test_capacities_without_a_unit_give_no_rates(tmp_path):
    topology, left_out = topology_of(tmp_path, "alps.xml", SNDLIB.replace("MBITPERSEC", ""))
    assert topology.links[0].rate_bits_per_s == RATE
    assert left_out == ("capacities of 1 links: the file gives no unit",)
    _, left_out = topology_of(tmp_path, "alps.xml", SNDLIB.replace("MBITPERSEC", "TBITPERSEC"))
    assert left_out == ("capacities of 1 links: the unit TBITPERSEC is unknown",)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.txt", "", "should end in .json"),
        ("a.json", "[]", "should be"),
        ("a.json", '{"nodes": [{"id": 1}, {"id": "1"}], "edges": []}', "node 1: is there twice"),
        ("a.json", '{"nodes": [], "edges": []}', "has no links"),
        ("a.json", '{"nodes": [{"id": 0}], "edges": [{"source": 0, "target": 0}]}', "has no links, other"),
        ("a.json", TOPOHUB.replace('"id": 2', '"id": [2]'), "nodes.2.id"),
        ("a.gml", "graph [ node [", "the file ends too early"),
        ("a.gml", 'graph [\nnode [ id 0 label "x ]', "a.gml:2: not valid GML: a quotation"),
        ("a.gml", "graph [\n]\n]", "a.gml:3: not valid GML: ']' is not expected here"),
        ("a.gml", "graph " + "[ a " * 30, "nested too deeply"),
        ("a.gml", ZOO_GML.replace("46.95", "946.95"), "node 0: 7.45, 946.95 are not a longitude"),
        ("a.gml", SHADOW.replace('"10 ms"', "10"), "should have a unit, such as 10 ms, not '10'"),
        ("a.gml", SHADOW.replace('"10 ms"', '"1e99 ms"'), "edge 1: latency cannot be '1e99 ms'"),
        ("a.gml", SHADOW.replace('"10 ms"', '"1e999999 ms"'), "edge 1: latency cannot be '1e999999 ms'"),
        ("a.gml", SHADOW.replace("100 Mbit", "0 bit"), "node 0: host_bandwidth_up cannot be '0 bit'"),
        ("a.gml", SHADOW.replace('"10 ms"', '"2 min"'), "links.0.forward.delay"),
        ("a.gml", SHADOW.replace('"10 ms"', '"70 s"'), "links.0.forward.delay"),
        ("a.gml", SHADOW.replace("0.01", "1.5"), "edge 1: packet_loss should be from 0 to 1, not 1.5"),
        ("a.gml", b"graph [ \xff ]", "is not UTF-8 text"),
        ("a.graphml", "<graphml>", "a.graphml:1: not valid XML"),
        ("a.graphml", '<!DOCTYPE a [<!ENTITY b "c">]><graphml/>', "has a document type definition"),
        ("a.xml", "<html/>", "is neither GraphML"),
        ("a.xml", SNDLIB.replace("<x>7.45</x>", ""), "node Bern: its coordinates are not a longitude"),
        ("a.clab.yml", CONTAINERLAB.replace('"zuerich:eth1"', '"x:eth1"'), "edge 0: there is no node x"),
        ("a.clab.yml", CONTAINERLAB.replace(', "zuerich:eth1"', ""), "should be two endpoints, such as"),
        ("a.gml", ZOO_GML.replace("id 4", "size 4"), "node 4: has no id"),
        ("a.gml", ZOO_GML.replace("46.95", "north"), "node 0: latitude should be a number, not north"),
        ("a.graphml", "<graphml/>", "has no graph"),
        ("a.xml", "<network/>", "has no nodes"),
        ("a.xml", '<?xml version="1.0" encoding="x"?><network/>', "not valid XML"),
    ],
)  # fmt: skip
def test_invalid_files_are_refused_in_one_line(tmp_path, name, content, said):
    assert said in refusal(topology_of, tmp_path, name, content)


@pytest.mark.parametrize("count", [250, 251])
def test_a_network_has_at_most_as_many_nodes_as_a_topology_has_regions(tmp_path, count):
    nodes = "".join(f"node [ id {number} ]" for number in range(count))
    edges = "".join(f'edge [ source 0 target {number} latency "1 ms" ]' for number in range(1, count))
    if count <= 250:
        assert len(topology_of(tmp_path, "a.gml", f"graph [ {nodes} {edges} ]")[0].regions) == count
        return
    with pytest.raises(InputError, match="has 251 connected nodes: a topology has at most 250 regions"):
        topology_of(tmp_path, "a.gml", f"graph [ {nodes} {edges} ]")


PIECES = [
    "graph [",
    "node [",
    "edge [",
    "]",
    "id 0",
    "id 1",
    "source 0",
    "target 1",
    'latency "1 ms"',
    '"',
    "x",
]
TEXTS = st.one_of(
    st.text(max_size=100),
    st.lists(st.sampled_from(PIECES), max_size=30).map(" ".join),
    st.tuples(
        st.sampled_from([ZOO_GML, ZOO_GRAPHML, TOPOHUB, SNDLIB, SHADOW, CONTAINERLAB]),
        st.integers(0, 1000),
        st.text(max_size=4),
    ).map(lambda drawn: drawn[0][: drawn[1]] + drawn[2] + drawn[0][drawn[1] + len(drawn[2]) :]),
)


@given(TEXTS, st.sampled_from(["gml", "graphml", "xml", "json", "yml"]))
def test_any_text_is_imported_or_refused(tmp_path_factory, text, ending):
    content = text.encode("utf-8", "replace")
    try:
        topology, _ = topology_of(tmp_path_factory.mktemp("m"), f"a.{ending}", content, delay_us=1_000)
    except InputError:
        return
    assert len(topology.regions) >= 2
