"""No Python process of Cutset imports anything from its working directory.

Any user who may write there (a folder such as /tmp, a colleague's runs) could otherwise run code with the
rights of the Cutset user, root included. `plant_modules` puts modules there that leave a mark.
"""

import ast
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.child_python import python_command
from testbed.cli import main
from testbed.machines.software.deploy import our_python
from tests.testbed.runner.live import PROJECT
from tests.testbed.sandbox.planting import marks, plant_modules

PACKAGES = ("analysis", "experiments", "node", "systems", "testbed", "topologies")
MODULES_STARTED = (
    "analysis.live",
    "analysis.jobs.daemon",
    "node.tcp.launcher",
    "testbed.campaign.hunting.worker",
    "testbed.campaign.jobs.simulated_run",
    "testbed.campaign.sweeps.study",
    "testbed.shell",
    "testbed.machines.agent",
    "testbed.links.relay",
    "testbed.runner",
    "testbed.sandbox.init",
    "testbed.shell.prompt",
    "testbed.machines.shipping.sender",
)
"""Modules that end at once, or complain, when they are started with nothing to do."""
SPEAK_OF_PYTHON = ("executable", "-m", "python3", "get_context", "multiprocessing")
"""One of these stands in each file that names an interpreter."""
MAY_NAME_PYTHON = {
    "experiments/child_python.py": "begins all commands that start one",
    "analysis/session.py": "tells Spark which one to start; SAFE_ENVIRONMENT goes with it",
    "analysis/jobs/probe.py": "says which one a cluster's worker is",
    "testbed/programs.py": "names the one of programs' clients, which start in folders of their own",
    "node/programs/minder.py": "tells its commands from those of an image",
    "testbed/campaign/nights/night_installation.py": "finds the `cutset` beside it",
    "testbed/machines/software/deploy.py": "begins commands for machines",
    "testbed/machines/run_folders.py": "ends them",
    "testbed/machines/software/images.py": "ends them",
    "testbed/machines/software/needed_programs.py": "ends them",
    "testbed/machines/shipping/receiver.py": "ends them",
}


def started_in(folder: Path, command: list[str]) -> None:
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run(command, cwd=folder, env=environment, timeout=60, check=False, **quiet)


def test_planted_modules_would_run_without_protection(tmp_path):
    plant_modules(tmp_path)
    started_in(tmp_path, [sys.executable, "-m", "testbed.sandbox.init"])
    assert marks(tmp_path)


@pytest.mark.parametrize("module", MODULES_STARTED)
def test_a_child_imports_nothing_from_its_folder(tmp_path, module):
    plant_modules(tmp_path)
    started_in(tmp_path, python_command(module))
    assert marks(tmp_path) == []


def test_machines_start_the_code_with_a_safe_path():
    assert our_python("/var/tmp/code")[-2:] == ["python3", "-P"]


def test_setup_imports_nothing_from_its_folder(tmp_path):
    plant_modules(tmp_path)
    for line in (PROJECT / "testbed/provision/provision.sh").read_text().splitlines():
        if (found := re.search(r"(-\S+ )?-c 'import .*?'", line)) is not None:
            started_in(tmp_path, [sys.executable, *shlex.split(found[0])])
    assert marks(tmp_path) == []


def test_every_python_is_started_with_a_safe_path():
    assert [place for place in pythons_named() if place not in MAY_NAME_PYTHON] == []


def pythons_named() -> Iterator[str]:
    """Yield the places where code names an interpreter, or the modules that start one."""
    for path in (path for package in PACKAGES for path in sorted((PROJECT / package).rglob("*.py"))):
        name, text = str(path.relative_to(PROJECT)), path.read_text()
        if not any(word in text for word in SPEAK_OF_PYTHON):
            continue  # most files: to parse them all takes seconds
        for node in ast.walk(ast.parse(text)):
            match node:
                case ast.Attribute(attr="executable" | "_base_executable"):
                    yield name
                case ast.Constant(value="-m" | "python3"):
                    yield name
                case ast.Call(func=ast.Name(id="get_context"), args=[ast.Constant(value="fork")]):
                    pass  # what is forked imports as its parent does
                case ast.Call(func=ast.Name(id="get_context") | ast.Attribute(attr="get_context")):
                    yield name
                case ast.Import(names=[ast.alias(name="multiprocessing"), *_]):
                    yield name


def test_the_command_searches_no_working_directory(monkeypatch):
    monkeypatch.setenv("PATH", f".:{os.environ['PATH']}::bin")
    monkeypatch.setenv("PYTHONPATH", f":{PROJECT}:src")
    assert main.run(["list"]) == 0
    assert os.environ["PYTHONPATH"] == str(PROJECT)
    assert all(Path(entry).is_absolute() for entry in os.environ["PATH"].split(":"))
