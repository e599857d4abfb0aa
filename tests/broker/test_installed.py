"""A system by the entry point of an installed package, used from an empty folder."""

from pathlib import Path

import pytest

from node import systems
from testbed.cli import main

HERE = Path(__file__).parent


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Installs a package whose entry point leads to this; gives an empty folder to be in."""

    def install(reference):
        site, folder = tmp_path / "site", tmp_path / "empty"
        package = reference.partition(".")[0]
        (site / package).mkdir(parents=True)
        (site / package / "__init__.py").touch()
        (site / package / "system.py").write_text((HERE / "peers.py").read_text())
        about = site / f"{package}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(f"[cutset.systems]\npeers = {reference}\n")
        folder.mkdir()
        (folder / "peers.yaml").write_text((HERE / "peers.yaml").read_text().replace("5s", "2s"))
        monkeypatch.syspath_prepend(site)
        monkeypatch.delenv(systems.MODULES_VARIABLE)
        monkeypatch.chdir(folder)
        systems.systems.cache_clear()

    return install


@pytest.mark.slow
def test_an_installed_system_runs_from_an_empty_folder(installed, capsys):
    installed("installed_peers.system:SYSTEM")
    assert main.run(["run", "peers.yaml", "--on", "simulator"]) == 0, capsys.readouterr()


def test_a_package_that_cannot_be_imported_is_reported_by_its_name(installed, capsys):
    installed("broken_peers.no_such_module:SYSTEM")
    assert main.run(["plan", "peers.yaml"]) == 2
    said = capsys.readouterr().err
    assert "of the installed package broken_peers: ModuleNotFoundError: " in said
    assert "Traceback" not in said
