"""Units that start a night: systemd accepts them with any characters in paths and hooks."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.nightly.units import NightSchedule, cron_lines, units

AWKWARD = (sys.executable, "nightly", "run", "quick", "--hook", "sh -c 'echo \"50% of $HOME\" \\ done'")


def installed(folder: Path, *, user: str | None = None, command: tuple[str, ...] = AWKWARD) -> NightSchedule:
    return NightSchedule("quick", command, folder, "/usr/bin:/bin", 2, 5, 1500.0, user)


def verified(unit: Path, *, user: bool) -> tuple[int, str]:
    """Return exit code and output of systemd's own check, which needs no running systemd."""
    done = subprocess.run(
        ["systemd-analyze", "--user" if user else "--system", "verify", "--man=no", str(unit)],
        env={**os.environ, "XDG_RUNTIME_DIR": str(unit.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze here")
@pytest.mark.parametrize("user", [None, "root"])
def test_systemd_verifies_the_units(tmp_path, user):
    folder = tmp_path / "a folder of 100%"
    folder.mkdir()
    texts = units(installed(folder, user=user))
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    # The timer brings its service along.
    for name in ("cutset-nightly-quick.timer", "cutset-nightly-quick-resume.service"):
        code, said = verified(tmp_path / name, user=user is None)
        assert (code, [line for line in said.splitlines() if "cutset-nightly" in line]) == (0, []), said


def test_the_timer_starts_the_service_and_the_rest_follows_a_reboot(tmp_path):
    night = installed(tmp_path)
    texts = units(night)
    assert list(texts) == [f"{night.name}.service", night.timer, night.resume]
    assert (
        "OnCalendar=*-*-* 02:05:00\nPersistent=true\nUnit=cutset-nightly-quick.service\n"
        in (texts[night.timer])
    )
    assert "[Install]" not in texts[f"{night.name}.service"]
    assert texts[night.resume].endswith("[Install]\nWantedBy=default.target\n")
    assert re.search(r"^ExecStart=.* --resume$", texts[night.resume], re.MULTILINE)


def test_system_units_run_as_a_named_user(tmp_path):
    night = installed(tmp_path, user="ada")
    texts = units(night)
    assert "User=ada\n" in texts[f"{night.name}.service"]
    assert texts[night.resume].endswith("WantedBy=multi-user.target\n")


def test_arguments_reach_the_command_unchanged(tmp_path):
    """Pass cron's line to a shell after removing the backslashes before `%`, as cron does."""
    marked = (sys.executable, "-c", "import sys; print(sys.argv[1:])", "50% of $HOME", "it's")
    lines = cron_lines(installed(tmp_path, command=marked)).splitlines()
    assert [line.split(" cd ")[0] for line in lines] == ["5 2 * * *", "@reboot"]
    for line, more in zip(lines, ([], ["--resume"]), strict=True):
        assert not re.search(r"(?<!\\)%", line)
        command = line[line.index("cd ") :].replace(r"\%", "%")
        said = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=True).stdout
        assert said.strip() == str(["50% of $HOME", "it's", *more])
