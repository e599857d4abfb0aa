"""A machine that raises is told in one line: which process, where, and what."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.cli import main

HERE = Path(__file__).parent
FAILS = {
    "take": ("    def take(self, connection, message):\n", "        raise KeyError('no such\\n topic')\n"),
    "begin": ("    def begin(self):\n        self.emit(m.Listen", "        self.no_such_thing()\n"),
    "init": ("        self.parameters = Parameters(**spec.parameters)\n", "        [][0]\n"),
}


@pytest.fixture
def failing(tmp_path):
    """Return a function that writes the peers with a raising line; its result: module and line number."""

    def written(where):
        text = (HERE / "peers.py").read_text().replace('"peers",', '"broken",')
        before, line = FAILS[where]
        place = text.index(before) + before.index("\n") + 1
        (tmp_path / "broken.py").write_text(text[:place] + line + text[place:])
        experiment = (HERE / "peers.yaml").read_text().replace("system: peers", "system: broken")
        (tmp_path / "broken.yaml").write_text(experiment.replace("5s", "2s"))
        return tmp_path / "broken.py", text[:place].count("\n") + 1

    return written


def cutset(folder, *arguments):
    """Run the command in a new process, because a process reads the system module only once."""
    environment = {key: value for key, value in os.environ.items() if key != "CUTSET_SYSTEM_MODULES"}
    command = [sys.executable, "-P", "-m", main.__name__, "--system-module", "broken.py", *arguments]
    return subprocess.run(
        command, check=False, cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "what"),
    [("take", "KeyError: 'no such"), ("begin", "AttributeError: "), ("init", "IndexError: ")],
)
def test_in_virtual_time_it_is_one_line(failing, where, what):
    module, line = failing(where)
    ran = cutset(module.parent, "run", "broken.yaml", "--on", "simulator")
    said = ran.stderr.splitlines()[-1]
    assert ran.returncode == 1
    assert said.startswith("cutset: r")
    assert f"/peer-0 failed: {module}:{line}: {what}" in said
    assert "Traceback" not in ran.stderr + ran.stdout
    assert "Traceback" in cutset(module.parent, "--debug", "run", "broken.yaml", "--on", "simulator").stderr


@pytest.mark.network
@pytest.mark.slow
def test_a_run_reports_the_cause_of_a_real_process_crash(failing):
    module, line = failing("take")
    ran = cutset(module.parent, "run", "broken.yaml")
    told = [each for each in ran.stdout.splitlines() if "ended unexpectedly" in each]
    assert ran.returncode == 1
    assert any(f"({module}:{line}: KeyError: " in each and "see logs/r" in each for each in told), ran.stdout
