"""A topology's request to a site: an RSpec with a machine for each region."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from testbed.cli import main
from testbed.machines.emulab.request import ONE_EACH, Density, Hardware, limit_warnings, site_request
from testbed.machines.emulab.rspec import prepare_command, request_rspec
from testbed.machines.emulab.rspec_names import NAMESPACE
from testbed.machines.inventory import Shaping
from topologies.document import parse_document, validated
from topologies.errors import InputError
from topologies.loader import load_topology
from topologies.model import Topology

PAIRS = Density(regions_per_machine=2)
NAMES = {"r": NAMESPACE}


def topology(links: str, regions: str = "r0: {}, r1: {}, r2: {}") -> Topology:
    return validated(
        Topology,
        parse_document("t.yaml", f"name: t\nregions: {{{regions}}}\nlinks: [{links}]\n"),
    )


def written(given: Topology, shaping: Shaping, density: Density = ONE_EACH) -> str:
    return request_rspec(site_request(given, shaping, density), Hardware(), prepare=prepare_command())


def properties(rspec: str) -> list[dict[str, str]]:
    return [element.attrib for element in ElementTree.fromstring(rspec).iterfind("r:link/r:property", NAMES)]


@pytest.mark.parametrize("shaping", Shaping)
def test_a_request_equals_the_rspec_that_the_schema_accepted(shaping):
    rspec = request_rspec(
        site_request(load_topology("two-regions"), shaping, Density(machines_per_region=2)),
        Hardware(type="d430", image="urn:publicid:IDN+site+image+project//DEB"),
        prepare="sh prepare",
    )
    assert rspec == (Path(__file__).parent / "requests" / f"{shaping}.xml").read_text()


def test_the_sites_links_get_delay_rate_and_loss_of_each_direction():
    rspec = written(
        topology("{between: [r0, r1], delay: 1.5ms, rate: 10gbit, backward: {delay: 20ms, loss: 0.01%}},"
                 "{between: [r1, r2], delay: 0us}"),
        Shaping.EMULAB,
    )  # fmt: skip
    ports = [{"source_id": "r0:if0", "dest_id": "r1:if0"}, {"source_id": "r1:if0", "dest_id": "r0:if0"}]
    assert properties(rspec)[:2] == [
        ports[0] | {"capacity": "10000000", "latency": "1.5"},
        ports[1] | {"capacity": "10000000", "latency": "20", "packet_loss": "0.0001"},
    ]
    assert set(properties(rspec)[2]) == {"source_id", "dest_id"}


def test_links_within_one_machine_are_not_requested():
    root = ElementTree.fromstring(written(load_topology("four-regions"), Shaping.EMULAB, PAIRS))
    assert [node.get("client_id") for node in root.iterfind("r:node", NAMES)] == ["r0-r1", "r2-r3"]
    links = [link.get("client_id") for link in root.iterfind("r:link", NAMES)]
    assert links == ["r0-r2", "r0-r3", "r1-r2", "r1-r3"]


@pytest.mark.parametrize(
    ("links", "said"),
    [
        ("{between: [r0, r1], delay: 5ms, jitter: 1ms}", "t: r0-r1.forward: has jitter"),
        (
            "{between: [r0, r1], delay: 5ms, backward: {queue: 9packets}}",
            "t: r0-r1.backward: has a queue limit",
        ),
        ("{between: [r0, r1], delay: 5ms}", "t: links: none leads to r2"),
    ],
)
def test_requests_beyond_the_site_are_refused_with_an_alternative(links, said):
    with pytest.raises(InputError, match=f"{said}.*--shaping hosts"):
        site_request(topology(links), Shaping.EMULAB)
    assert site_request(topology(links), Shaping.HOSTS).machines == ("r0", "r1", "r2")


def test_unpromised_features_are_requested_with_a_note(capsys):
    assert main.run(["emulab", "profile", "four-regions", "--shaping", "emulab"]) == 0
    notes = capsys.readouterr().err.splitlines()
    assert notes[0] == "note: r0-r1: 10gbit is more than the 1gbit that Emulab promises"
    assert len(notes) == 6
    near = topology("{between: [r0, r1], delay: 0.5ms}, {between: [r1, r2], delay: 2ms, rate: 1gbit}")
    assert list(limit_warnings(site_request(near, Shaping.EMULAB))) == [
        "r0-r1: 500us is less than the 2ms that Emulab promises"
    ]


def test_too_few_too_many_and_too_long_are_refused():
    with pytest.raises(InputError, match="all fit one machine"):
        site_request(topology(""), Shaping.HOSTS, Density(regions_per_machine=3))
    long = ", ".join(f"region{number}abcdefgh: {{}}" for number in range(4))
    with pytest.raises(InputError, match="more than 30 characters"):
        site_request(topology("", long), Shaping.HOSTS, PAIRS)


def test_the_command_writes_the_profile_to_a_file(tmp_path, capsys):
    options = ["--machines-per-region", "2", "--regions-per-machine", "2"]
    assert main.run(["emulab", "profile", "four-regions", *options]) == 2
    assert "exclude each other" in capsys.readouterr().err
    target = tmp_path / "request.xml"
    assert main.run(["emulab", "profile", "four-regions", "--bare", "-o", str(target)]) == 0
    assert capsys.readouterr().out == f"{target}\n"
    assert target.read_text().count("<node ") == 4
    assert "<services" not in target.read_text()
