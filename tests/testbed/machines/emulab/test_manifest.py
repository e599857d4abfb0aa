"""A site's manifest becomes a valid inventory, or an error names what is missing."""

import contextlib
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.loader import load_experiment
from testbed.cli import main
from testbed.machines.emulab.manifest import read_manifest
from testbed.machines.emulab.request import ONE_EACH, Density, Hardware, site_request
from testbed.machines.emulab.rspec import request_rspec
from testbed.machines.emulab.rspec_names import NAMESPACE, machine_names, regions_of
from testbed.machines.emulab.to_inventory import inventory_text
from testbed.machines.inventory import Inventory, Shaping, load_inventory
from testbed.machines.placement import assignments, place
from testbed.planning import make_plan
from topologies.errors import InputError
from topologies.loader import load_topology

MANIFESTS = Path(__file__).parent / "manifests"


def text(name: str) -> str:
    return (MANIFESTS / f"{name}.xml").read_text()


def inventory(manifest: str, folder: Path, *, user: str | None = None, login_name: str = "me") -> Inventory:
    path = folder / "site.yaml"
    read = read_manifest(manifest, "m.xml")
    path.write_text(inventory_text(read, name="site", user=user, login_name=login_name))
    return load_inventory(path)


def refused(manifest: str, said: str, **who: str) -> None:
    with pytest.raises(InputError, match=said):
        inventory_text(read_manifest(manifest, "m.xml"), name="site", user=who.get("user"), login_name="me")


def test_machines_on_our_network_serve_the_regions_of_their_names(tmp_path):
    site = inventory(text("one-network"), tmp_path)
    assert (site.name, site.shaping) == ("site", Shaping.HOSTS)
    assert [(m.name, m.control, m.experiment, m.serves, m.user) for m in site.machines[:2]] == [
        ("r0", "pc101.site.example", "10.10.1.1", ("r0",), "ada"),
        ("r1", "pc102.site.example", "10.10.1.2", ("r1",), "ada"),
    ]
    assert len(site.machines) == 4


def test_the_sites_links_have_an_address_each_and_are_shaped_by_the_site(tmp_path):
    site = inventory(text("own-links"), tmp_path, user="grace")
    assert site.shaping is Shaping.EMULAB
    first = site.machines[0]
    assert first.links == {"r0-r1": "10.128.0.1", "r0-r2": "10.128.1.1"}
    assert (first.experiment, first.port, first.user) == (None, 30101, "grace")
    assert [m.name for m in site.machines] == ["r0", "r1", "r2"]  # the site's delay node is none of ours


def test_one_of_several_users_is_never_guessed():
    refused(text("own-links"), "choose with --user: ada, grace")
    refused(text("own-links"), "r0.login: eve cannot log in there: known are ada, grace", user="eve")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('type="manifest"', 'type="request"', "type: is request, not manifest"),
        ("resources/rspec/3", "resources/rspec/2", "is not an RSpec of version 3"),
        ("</rspec>", "", r"m.xml:\d+: not valid XML"),
        ("10.10.1.3", "10.10.1", "r2.r2:if0: '10.10.1' is not an IPv4 address"),
        ('port="22"', 'port="0"', "r0.login.port: '0' is not a port"),
        ("ssh-keys", "ssh-passwd", "no node with a login"),
        ("<rspec ", '<!DOCTYPE rspec [<!ENTITY a "b">]>\n<rspec ', "document type definition"),
        ('ref client_id="r3:if0"', 'ref client_id="rx:if0"', "one network with all machines"),
        ('username="ada"', "", "no node with a login"),
    ],
)  # fmt: skip
def test_an_unusable_manifest_is_refused_with_the_reason(old, new, said):
    refused(text("one-network").replace(old, new), said)


@given(st.integers(0, 5000), st.sampled_from(["", "<", '"', "&", "\x00", "é", "<node>", "</node>"]))
def test_damage_anywhere_is_bad_input_or_harmless(at, damage):
    whole = text("one-network")
    with contextlib.suppress(InputError):
        read = read_manifest(whole[:at] + damage + whole[at + 3 :], "m")
        inventory_text(read, name="s", user=None, login_name="")


def granted(request: str) -> str:
    """Return a site's manifest for a request: its own names, and the logins."""
    ElementTree.register_namespace("", NAMESPACE)
    root = ElementTree.fromstring(request)
    root.set("type", "manifest")
    for number, element in enumerate(root):
        element.set("sliver_id", f"urn:publicid:IDN+site.example+sliver+{number}")
        if element.tag == f"{{{NAMESPACE}}}node":
            services = ElementTree.SubElement(element, f"{{{NAMESPACE}}}services")
            login = {"authentication": "ssh-keys", "hostname": f"pc{number}.site.example", "port": "22"}
            ElementTree.SubElement(services, f"{{{NAMESPACE}}}login", login | {"username": "ada"})
    return ElementTree.tostring(root, encoding="unicode")


@pytest.mark.parametrize("shaping", Shaping)
@pytest.mark.parametrize(
    "density", [ONE_EACH, Density(machines_per_region=3), Density(regions_per_machine=2)]
)
def test_a_granted_request_carries_a_plan(tmp_path, shaping, density):
    request = site_request(load_topology("four-regions"), shaping, density)
    manifest = granted(request_rspec(request, Hardware(), prepare=None))
    site = inventory(manifest, tmp_path)
    topology = load_topology("four-regions")
    plan = make_plan(load_experiment("link-failure"), topology, seed=1, links_kind="auto")
    placement = place(plan, site)
    assert [machine.name for machine in placement.machines] == list(request.machines)
    tunnels = [
        tunnel
        for assignment in assignments(plan, site, placement, 1).values()
        for tunnel in assignment.tunnels
    ]
    at = {port.address: link.name for link in request.links for port in link.ports}
    for tunnel in tunnels:
        assert at[tunnel.local] == at[tunnel.remote]  # both ends are on one network of the site's
        assert shaping is Shaping.HOSTS or "~" in tunnel.link or at[tunnel.local] == tunnel.link


def test_a_machines_name_contains_its_regions_also_with_hyphens():
    regions = ("New-York", "r0", "AS-7018")
    assert regions_of(machine_names(regions, 1)[0]) == regions
    assert [regions_of(name) for name in machine_names(("New-York",), 2)] == [("New-York",)] * 2


def test_the_local_user_is_the_login_if_the_site_knows_the_name(tmp_path):
    assert inventory(text("own-links"), tmp_path, login_name="grace").machines[0].user == "grace"


def test_another_profile_serves_if_all_its_machines_share_one_network(tmp_path):
    site = inventory(text("other-profile"), tmp_path)
    assert [(m.name, m.experiment, m.serves) for m in site.machines] == [
        ("node-0", "192.168.6.1", ()),
        ("node-1", "192.168.6.2", ()),
    ]


def test_the_command_prints_the_inventory(capsys, tmp_path):
    assert main.run(["emulab", "inventory", str(MANIFESTS / "one-network.xml"), "--name", "utah"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("# Machines of ")
    (tmp_path / "utah.yaml").write_text(out)
    assert load_inventory(tmp_path / "utah.yaml").name == "utah"


def test_a_missing_file_is_bad_input(capsys):
    assert main.run(["emulab", "inventory", "nowhere.xml"]) == 2
    assert capsys.readouterr().err == "cutset: nowhere.xml: cannot be read: No such file or directory\n"
