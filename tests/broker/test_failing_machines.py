"""A machine that raises is told in one line: which process, where, and what."""

from pathlib import Path

import pytest

from node import systems
from testbed.cli import main

HERE = Path(__file__).parent
FAILS = {
    "take": ("    def take(self, connection, message):\n", "        raise KeyError('no such\\n topic')\n"),
    "begin": ("    def begin(self):\n        self.emit(m.Listen", "        self.no_such_thing()\n"),
    "init": ("        self.parameters = Parameters(**spec.parameters)\n", "        [][0]\n"),
}


@pytest.fixture
def failing(tmp_path, monkeypatch):
    """Return a function that writes the peers with a raising line and enters their folder.

    Its result: the module, which has a name of its own because a process reads it only once; the line number.
    """

    def written(where):
        text = (HERE / "peers.py").read_text().replace('"peers",', f'"{where}",')
        before, line = FAILS[where]
        place = text.index(before) + before.index("\n") + 1
        module = tmp_path / f"broken_{tmp_path.name}.py"
        module.write_text(text[:place] + line + text[place:])
        experiment = (HERE / "peers.yaml").read_text().replace("system: peers", f"system: {where}")
        (tmp_path / "broken.yaml").write_text(experiment.replace("5s", "2s"))
        monkeypatch.chdir(tmp_path)
        monkeypatch.delenv(systems.MODULES_VARIABLE)
        return module, text[:place].count("\n") + 1

    return written


@pytest.mark.parametrize(
    ("where", "what"),
    [("take", "KeyError: 'no such"), ("begin", "AttributeError: "), ("init", "IndexError: ")],
)
def test_in_virtual_time_it_is_one_line(failing, capsys, where, what):
    module, line = failing(where)
    run = ["--system-module", module.name, "run", "broken.yaml", "--on", "simulator"]
    assert main.run(run) == 1
    out, err = capsys.readouterr()
    said = err.splitlines()[-1]
    assert said.startswith("cutset: r")
    assert f"/peer-0 failed: {module}:{line}: {what}" in said
    assert "Traceback" not in out + err
    assert main.run(["--debug", *run]) == 1
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.network
@pytest.mark.slow
def test_a_run_reports_the_cause_of_a_real_process_crash(failing, capsys):
    module, line = failing("take")
    assert (
        main.run(["--system-module", module.name, "run", "broken.yaml", "--set", "topology=two-regions"]) == 1
    )
    out = capsys.readouterr().out
    told = [each for each in out.splitlines() if "ended unexpectedly" in each]
    assert any(f"({module}:{line}: KeyError: " in each and "see logs/r" in each for each in told), out
