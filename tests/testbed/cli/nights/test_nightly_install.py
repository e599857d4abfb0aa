"""`cutset nightly install`: units printed or installed, and lines for cron."""

import sys
from pathlib import Path

import pytest

from testbed.cli import main

UNITS = ["cutset-nightly-quick.service", "cutset-nightly-quick.timer", "cutset-nightly-quick-resume.service"]


@pytest.fixture
def systemctl(tmp_path, monkeypatch):
    """A substitute for systemctl that records its calls; the file `refuse` makes it fail."""
    programs = tmp_path / "programs"
    programs.mkdir()
    program = programs / "systemctl"
    program.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n'
        f"if [ -e {tmp_path}/refuse ]; then echo 'Failed to connect to bus' >&2; exit 1; fi\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_units_are_written_and_enabled(systemctl, capsys):
    assert main.run(["nightly", "install", "quick", "--at", "03:30"]) == 0
    folder = systemctl / "config/systemd/user"
    assert sorted(path.name for path in folder.iterdir()) == sorted(UNITS)
    assert f"WorkingDirectory={systemctl}\n" in (folder / UNITS[0]).read_text()
    assert "OnCalendar=*-*-* 03:30:00\n" in (folder / UNITS[1]).read_text()
    assert (systemctl / "asked").read_text().splitlines() == [
        "--user daemon-reload",
        "--user enable --now cutset-nightly-quick.timer",
        "--user enable cutset-nightly-quick-resume.service",
    ]
    said = capsys.readouterr().out
    assert "quick runs every night at 03:30\n" in said
    assert "loginctl enable-linger" in said


def test_printing_installs_nothing(systemctl, capsys):
    assert main.run(["nightly", "install", "quick", "--print", "--jobs", "2"]) == 0
    said = capsys.readouterr().out
    assert [line[2:] for line in said.splitlines() if line.startswith("# ")] == UNITS
    starts = f"ExecStart={Path(sys.executable).with_name('cutset')} nightly run quick --wait 12h --jobs 2"
    assert f"{starts}\n" in said
    assert not (systemctl / "config").exists()
    assert not (systemctl / "asked").exists()


def test_installed_nights_keep_their_options(systemctl, capsys):
    options = ["--history", "kept", "--hook", "mail -s night ada", "--site", "/srv/www"]
    assert main.run(["nightly", "install", "quick", "--cron", "--at", "23:05", *options]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"5 23 * * * cd {systemctl} && PATH=")
    kept = f"--history {systemctl}/kept --site /srv/www --hook 'mail -s night ada'"
    wanted = f"nightly run quick --wait 12h {kept}"
    assert lines[0].endswith(wanted)
    assert lines[1].endswith(f"{wanted} --resume")
    assert not (systemctl / "asked").exists()


def test_without_systemd_the_remedy_is_printed(systemctl, capsys):
    (systemctl / "refuse").touch()
    assert main.run(["nightly", "install", "quick"]) == 3
    said = capsys.readouterr().err
    assert (
        "the units are written, but systemctl --user daemon-reload failed: Failed to connect to bus" in said
    )
    assert "use --cron without systemd" in said


@pytest.mark.parametrize("words", [["nosuch"], ["quick", "--at", "25:00"], ["quick", "--hook", "'"]])
def test_a_night_that_could_not_start_is_refused_at_installation(systemctl, words):
    assert main.run(["nightly", "install", *words]) == 2
    assert not (systemctl / "config").exists()
