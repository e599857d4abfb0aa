"""`cutset topology import`."""

import sys

import pytest

from testbed.cli import main
from tests.topologies.imported.files import PIXELS, TOPOHUB, ZOO_GML
from topologies.imported import topohub
from topologies.loader import load_topology


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A small package with the layout of TopoHub, installed as such."""
    site = tmp_path / "site"
    data = site / "topohub" / "data"
    for name, content in (("zoo/Alps", TOPOHUB), ("zoo/Andes", TOPOHUB), ("sndlib/drawn", PIXELS)):
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / f"{name}.json").write_text(content)
    (site / "topohub" / "__init__.py").touch()
    described = site / "topohub-9.8.7.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: topohub\nVersion: 9.8.7\n")
    monkeypatch.syspath_prepend(site)
    yield
    sys.modules.pop("topohub", None)


@pytest.mark.usefixtures("package")
def test_a_network_of_topohub_is_imported_by_its_name(tmp_path, capsys):
    file = tmp_path / "alps.yaml"
    assert main.run(["topology", "import", "topohub:zoo/Alps", "-o", str(file), "--name", "alps-2"]) == 0
    assert capsys.readouterr().out == f"{file}\n"
    topology = load_topology(str(file))
    assert (topology.name, len(topology.regions)) == ("alps-2", 3)
    assert topology.description == "Imported from zoo/Alps of TopoHub 9.8.7."
    assert "# Zürich" in file.read_text()
    assert "5 us per km of a path that is 1.5 times as long as the great circle" in file.read_text()


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("topohub:zoo/Alp", "TopoHub 9.8.7 has no such network: did you mean zoo/Alps?"),
        ("topohub:zoo/Himalaya", "zoo has zoo/Alps and 1 others"),
        ("topohub:zo/Alps", "known are sndlib, zoo"),
        ("topohub:zoo/../zoo/Alps", "has no such network"),
    ],
)
def test_unknown_topohub_networks_are_refused_in_one_line(capsys, source, said):
    assert main.run(["topology", "import", source]) == 2
    refused = capsys.readouterr().err
    assert said in refused
    assert refused.count("\n") == 1


def test_without_the_package_the_error_says_how_to_install_it(monkeypatch, capsys):
    monkeypatch.setattr(topohub, "PACKAGE", "topohub_that_is_not_installed")
    assert main.run(["topology", "import", "topohub:topozoo/Geant2012"]) == 2
    assert (
        "is not installed in Cutset's environment (.venv): install it, or give a file"
        in capsys.readouterr().err
    )


def test_the_command_prints_what_it_leaves_out(tmp_path, capsys):
    source = tmp_path / "alps.gml"
    source.write_text(ZOO_GML)
    assert main.run(["topology", "import", str(source), "--rate", "none"]) == 0
    shown = capsys.readouterr()
    assert "left out: 1 self-loop\n" in shown.err
    assert "# Left out: 1 self-loop." in shown.out
    assert "# Imported from alps.gml, SHA-256 " in shown.out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--delay", "5"], "--delay: '5' is not a duration"),
        (["--rate", "fast"], "--rate: 'fast' is not a rate"),
        (["--path-factor", "nan"], "nan is not finite"),
        (["--name", "Alps!"], "name"),
        (["-o", "/nowhere/alps.yaml"], "its directory does not exist"),
    ],
)
def test_invalid_options_are_refused(tmp_path, capsys, options, said):
    source = tmp_path / "alps.gml"
    source.write_text(ZOO_GML)
    assert main.run(["topology", "import", str(source), *options]) == 2
    assert said in capsys.readouterr().err
    assert main.run(["topology", "import", str(tmp_path / "none.gml")]) == 2
    assert "none.gml: cannot be read" in capsys.readouterr().err
