"""The Vagrantfile is valid for both providers and does what it promises, with fake machines."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.machines.inventory import load_inventory

pytestmark = pytest.mark.slow

PROJECT = Path(__file__).parents[3]
FAKE = Path(__file__).with_name("fake_provider.rb")
RSYNC_TO_GUEST = """\
#!/usr/bin/env python3
import os, sys
os.execv(os.environ["RSYNC"], ["rsync", *sys.argv[1:-1], os.environ["GUEST"]])
"""
"""rsync, to a folder of this computer instead of a machine's."""
Vagrant = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def vagrant(tmp_path_factory: pytest.TempPathFactory) -> Vagrant:
    """Return a function that runs vagrant with separate state and a fake VirtualBox that only prints its
    version.
    """
    folder = tmp_path_factory.mktemp("vagrant")
    virtualbox = folder / "bin" / "VBoxManage"
    virtualbox.parent.mkdir()
    virtualbox.write_text("#!/bin/sh\necho 7.0.20r163906\n")
    virtualbox.chmod(0o755)
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("LAB", "VAGRANT_", "FAKE_"))
    }
    own = {
        "VAGRANT_CHECKPOINT_DISABLE": "1",  # or it may say that there is a newer version
        "VAGRANT_HOME": str(folder / "home"),
        "VAGRANT_DOTFILE_PATH": str(folder / "dot"),  # what is up already, unless a test has its own
        "PATH": f"{virtualbox.parent}:{os.environ['PATH']}",
    }

    def run(*arguments: str, cwd: Path = PROJECT, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["vagrant", *arguments],
            cwd=cwd,
            env=inherited | own | more,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    return run


@pytest.fixture
def pretended(tmp_path: Path) -> Path:
    """Copy the files that Vagrant reads, with a provider that only records its requests."""
    (tmp_path / "testbed" / "provision").mkdir(parents=True)
    shutil.copy(PROJECT / ".gitignore", tmp_path)
    shutil.copy(PROJECT / "testbed" / "provision" / "lab.rb", tmp_path / "testbed" / "provision")
    text = (PROJECT / "Vagrantfile").read_text()
    (tmp_path / "Vagrantfile").write_text(f"require {str(FAKE)!r}\n{text}")
    return tmp_path


def up(vagrant: Vagrant, folder: Path, **environment: str) -> tuple[subprocess.CompletedProcess[str], str]:
    """Return the output of `vagrant up`, and its actions on the machines."""
    log = folder / "log"
    own = {"FAKE_LOG": str(log), "VAGRANT_DOTFILE_PATH": str(folder / "dot")}
    done = vagrant("up", "--provider", "fake", cwd=folder, **own, **environment)
    return done, log.read_text()


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize("provider", ["virtualbox", "libvirt"])
def test_the_vagrantfile_is_valid(vagrant, provider):
    done = vagrant("validate", VAGRANT_DEFAULT_PROVIDER=provider, LAB="3")
    assert (done.returncode, done.stdout.strip()) == (0, "Vagrantfile validated successfully."), done.stderr


def test_three_machines_get_an_inventory_with_their_fingerprints(vagrant, pretended):
    done, log = up(vagrant, pretended, LAB="3")
    assert done.returncode == 0, done.stderr
    inventory = load_inventory(pretended / "lab.yaml")
    assert [(m.name, m.control, m.experiment, m.user, m.host_key) for m in inventory.machines] == [
        (f"h{n}", f"192.168.56.{10 + n}", f"10.10.1.{10 + n}", "vagrant", f"SHA256:{str(n) * 43}")
        for n in range(3)
    ]
    assert log.count('vagrant-shell "run"') == 1
    assert log.count('vagrant-shell "machine"') == 2
    assert "h0 upload /home/vagrant/cutset/lab.yaml" in log
    for machine in inventory.machines:  # the first may log in to all
        assert f"{machine.name} execute grep -qF 'ssh-ed25519 AAAAkeyh0' ~/.ssh/authorized_keys" in log


def test_text_that_is_no_key_is_not_added_to_the_keys(vagrant, pretended):
    done, log = up(vagrant, pretended, LAB="2", FAKE_KEY="x' >/etc/passwd; echo '")
    assert done.returncode != 0
    assert "h0 has no key of its own: vagrant provision h0" in done.stdout + done.stderr
    assert "authorized_keys" not in log
    assert not (pretended / "lab.yaml").exists()


def test_one_machine_is_set_up_and_copying_keeps_generated_files(vagrant, pretended, tmp_path_factory):
    """Files made in the folder stay here and there; files removed here are removed there. There is no
    inventory.
    """
    folder = tmp_path_factory.mktemp("copied")
    rsync, guest = folder / "bin" / "rsync", folder / "guest"
    made = ["runs/one/run.json", "history/runs.jsonl", ".venv/pyvenv.cfg", "node/__pycache__/a.pyc"]
    sources = ["node/a.py", "analysis/history/store.py"]
    write(rsync, RSYNC_TO_GUEST)
    rsync.chmod(0o755)
    for name in made:
        write(pretended / name, "of here")
        write(guest / name, "of the machine")
    for name in sources:
        write(pretended / name, "of here")
    write(guest / "node/gone.py", "of before")
    path = f"{rsync.parent}:{os.environ['PATH']}"
    done, log = up(vagrant, pretended, PATH=path, RSYNC=str(shutil.which("rsync")), GUEST=str(guest))
    assert done.returncode == 0, done.stderr
    assert 'vagrant-shell "run"' in log
    assert "make setup" in log
    assert not (pretended / "lab.yaml").exists()
    assert [(guest / name).read_text() for name in made] == ["of the machine"] * len(made)
    assert [(guest / name).read_text() for name in sources] == ["of here"] * len(sources)
    assert not (guest / "node/gone.py").exists()


def test_a_lab_has_one_to_twenty_machines(vagrant):
    done = vagrant("validate", LAB="many")
    assert done.returncode != 0
    assert "LAB is the number of virtual machines, 1 to 20" in done.stderr
